CREATE TABLE `locus_state_threads` (
  `tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `thread_id` varchar(512) COLLATE utf8mb4_0900_bin NOT NULL,
  `last_seq` bigint unsigned NOT NULL,
  `first_seq` bigint unsigned NOT NULL,
  `version` binary(16) NOT NULL,
  `created_at` datetime(6) NOT NULL,
  `updated_at` datetime(6) NOT NULL,
  `expires_at` datetime(6) DEFAULT NULL,
  `turn_token` binary(16) DEFAULT NULL,
  `turn_until` datetime(6) DEFAULT NULL,
  PRIMARY KEY (`tenant`,`thread_id`),
  KEY `recent` (`tenant`,`updated_at`),
  KEY `expiry` (`expires_at`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: current layout 1';
INSERT INTO `locus_state_threads` (`tenant`, `thread_id`, `last_seq`, `first_seq`, `version`, `created_at`, `updated_at`, `expires_at`, `turn_token`, `turn_until`) VALUES (0x64656661756c74, 0x74, 3, 1, 0xed86cd862653839ab9c3cc5b62185617, '2026-11-28 03:12:22.847276', '2026-11-28 03:12:22.883519', NULL, NULL, NULL);
CREATE TABLE `locus_state_checkpoints` (
  `tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `thread_id` varchar(512) COLLATE utf8mb4_0900_bin NOT NULL,
  `seq` bigint unsigned NOT NULL,
  `checkpoint_id` varchar(128) COLLATE utf8mb4_0900_bin DEFAULT NULL,
  `parent_seq` bigint unsigned DEFAULT NULL,
  `base_seq` bigint unsigned DEFAULT NULL,
  `continues` tinyint NOT NULL,
  `token` binary(16) NOT NULL,
  `payload` longblob NOT NULL,
  `payload_bytes` int unsigned GENERATED ALWAYS AS (length(`payload`)) STORED NOT NULL,
  `metadata` mediumtext COLLATE utf8mb4_0900_bin,
  `metadata_keys` json DEFAULT NULL,
  `search_text` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci,
  `tenant_word` varchar(4) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci GENERATED ALWAYS AS (if((`search_text` is null),NULL,repeat(convert(char(227,(144 + (crc32(`tenant`) & 31)),(128 + ((crc32(`tenant`) >> 5) & 63)),227,(144 + ((crc32(`tenant`) >> 11) & 31)),(128 + ((crc32(`tenant`) >> 16) & 63))) using utf8mb4),2))) STORED,
  `pending_text` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci,
  `unindexed` tinyint DEFAULT NULL,
  `oldest_at` datetime(6) DEFAULT NULL,
  `checksum` int unsigned NOT NULL,
  `created_at` datetime(6) NOT NULL,
  PRIMARY KEY (`tenant`,`thread_id`,`seq`),
  UNIQUE KEY `named` (`tenant`,`thread_id`,`checkpoint_id`),
  KEY `bases` (`tenant`,`thread_id`,`base_seq`),
  KEY `parents` (`tenant`,`thread_id`,`parent_seq`),
  KEY `pending` (`unindexed`),
  KEY `metadata_pairs` ((cast(`metadata_keys` as unsigned array)),`tenant`),
  FULLTEXT KEY `words` (`tenant_word`,`search_text`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: current layout 1';
INSERT INTO `locus_state_checkpoints` (`tenant`, `thread_id`, `seq`, `checkpoint_id`, `parent_seq`, `base_seq`, `continues`, `token`, `payload`, `metadata`, `metadata_keys`, `search_text`, `pending_text`, `unindexed`, `oldest_at`, `checksum`, `created_at`) VALUES (0x64656661756c74, 0x74, 1, NULL, NULL, NULL, 0, 0xe164adf07b91086ff0f6715364a1ef57, '', NULL, NULL, NULL, 0x61206c696e65206f6620746865206c6f67206f66206120746872656164, 1, NULL, 2723379447, '2026-11-28 03:12:22.849453');
INSERT INTO `locus_state_checkpoints` (`tenant`, `thread_id`, `seq`, `checkpoint_id`, `parent_seq`, `base_seq`, `continues`, `token`, `payload`, `metadata`, `metadata_keys`, `search_text`, `pending_text`, `unindexed`, `oldest_at`, `checksum`, `created_at`) VALUES (0x64656661756c74, 0x74, 2, NULL, 1, NULL, 1, 0x0a71130c8b0c614bc5af2639cbf74b1d, '', NULL, NULL, NULL, 0x61206c696e65206f6620746865206c6f67206f66206120746872656164, 1, NULL, 2418718216, '2026-11-28 03:12:22.870752');
INSERT INTO `locus_state_checkpoints` (`tenant`, `thread_id`, `seq`, `checkpoint_id`, `parent_seq`, `base_seq`, `continues`, `token`, `payload`, `metadata`, `metadata_keys`, `search_text`, `pending_text`, `unindexed`, `oldest_at`, `checksum`, `created_at`) VALUES (0x64656661756c74, 0x74, 3, 0x6465376635343231383534623461363862366630323438656366376137366165, 2, 3, 1, 0xed86cd862653839ab9c3cc5b62185617, 0x019cba8e8954000000130000007b2270223a302c2274223a302c2263223a7b226c6f67223a31377d2c226c223a5b5b226c6f67222c302c39352c332c223964373134373830613538626133666162663935666563383161616662383161225d5d7d7b2273746570223a332c226c6f67223a5b5d7d2261206c696e65206f6620746865206c6f67206f66206120746872656164222c2261206c696e65206f6620746865206c6f67206f66206120746872656164222c2261206c696e65206f6620746865206c6f67206f6620612074687265616422, NULL, NULL, NULL, 0x61206c696e65206f6620746865206c6f67206f66206120746872656164, 1, NULL, 2763285306, '2026-11-28 03:12:22.883709');
CREATE TABLE `locus_state_ledger` (
  `tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `token` binary(16) NOT NULL,
  `outcome` bigint DEFAULT NULL,
  `recorded_at` datetime(6) NOT NULL,
  PRIMARY KEY (`tenant`,`token`),
  KEY `age` (`recorded_at`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: current layout 1';
INSERT INTO `locus_state_ledger` (`tenant`, `token`, `outcome`, `recorded_at`) VALUES (0x64656661756c74, 0x0a71130c8b0c614bc5af2639cbf74b1d, NULL, '2026-11-28 03:12:22.883824');
INSERT INTO `locus_state_ledger` (`tenant`, `token`, `outcome`, `recorded_at`) VALUES (0x64656661756c74, 0xe164adf07b91086ff0f6715364a1ef57, NULL, '2026-11-28 03:12:22.870897');
