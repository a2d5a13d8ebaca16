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
  KEY `recent` (`tenant`,`updated_at`,`thread_id`),
  KEY `expiry` (`expires_at`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: current layout 1';
INSERT INTO `locus_state_threads` (`tenant`, `thread_id`, `last_seq`, `first_seq`, `version`, `created_at`, `updated_at`, `expires_at`, `turn_token`, `turn_until`) VALUES (0x64656661756c74, 0x74, 3, 1, 0xd0531f92b43b344afe4a4b8a4bf120e0, '2026-11-28 03:10:19.624477', '2026-11-28 03:10:19.652150', NULL, NULL, NULL);
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
  KEY `metadata_pairs` ((cast(`metadata_keys` as unsigned array)),`tenant`,`thread_id`,`seq`),
  FULLTEXT KEY `words` (`search_text`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: current layout 1';
INSERT INTO `locus_state_checkpoints` (`tenant`, `thread_id`, `seq`, `checkpoint_id`, `parent_seq`, `base_seq`, `continues`, `token`, `payload`, `metadata`, `metadata_keys`, `search_text`, `pending_text`, `unindexed`, `oldest_at`, `checksum`, `created_at`) VALUES (0x64656661756c74, 0x74, 1, NULL, NULL, NULL, 0, 0x32f68041d2b8bcff746fb4ce55c9a332, '', NULL, NULL, NULL, 0x61206c696e65206f6620746865206c6f67206f66206120746872656164, 1, NULL, 1351821447, '2026-11-28 03:10:19.628247');
INSERT INTO `locus_state_checkpoints` (`tenant`, `thread_id`, `seq`, `checkpoint_id`, `parent_seq`, `base_seq`, `continues`, `token`, `payload`, `metadata`, `metadata_keys`, `search_text`, `pending_text`, `unindexed`, `oldest_at`, `checksum`, `created_at`) VALUES (0x64656661756c74, 0x74, 2, NULL, 1, NULL, 1, 0xcf064d0e3e87d0ee7f590be9672203d4, '', NULL, NULL, NULL, 0x61206c696e65206f6620746865206c6f67206f66206120746872656164, 1, NULL, 1356575479, '2026-11-28 03:10:19.641636');
INSERT INTO `locus_state_checkpoints` (`tenant`, `thread_id`, `seq`, `checkpoint_id`, `parent_seq`, `base_seq`, `continues`, `token`, `payload`, `metadata`, `metadata_keys`, `search_text`, `pending_text`, `unindexed`, `oldest_at`, `checksum`, `created_at`) VALUES (0x64656661756c74, 0x74, 3, 0x6637353162633237336466333437643438333966376663303731323138343164, 2, 3, 1, 0xd0531f92b43b344afe4a4b8a4bf120e0, 0x01b87e198354000000130000007b2270223a302c2274223a302c2263223a7b226c6f67223a31377d2c226c223a5b5b226c6f67222c302c39352c332c223964373134373830613538626133666162663935666563383161616662383161225d5d7d7b2273746570223a332c226c6f67223a5b5d7d2261206c696e65206f6620746865206c6f67206f66206120746872656164222c2261206c696e65206f6620746865206c6f67206f66206120746872656164222c2261206c696e65206f6620746865206c6f67206f6620612074687265616422, NULL, NULL, NULL, 0x61206c696e65206f6620746865206c6f67206f66206120746872656164, 1, NULL, 2189340387, '2026-11-28 03:10:19.652413');
CREATE TABLE `locus_state_ledger` (
  `tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `token` binary(16) NOT NULL,
  `outcome` bigint DEFAULT NULL,
  `recorded_at` datetime(6) NOT NULL,
  PRIMARY KEY (`tenant`,`token`),
  KEY `age` (`recorded_at`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: current layout 1';
INSERT INTO `locus_state_ledger` (`tenant`, `token`, `outcome`, `recorded_at`) VALUES (0x64656661756c74, 0x32f68041d2b8bcff746fb4ce55c9a332, NULL, '2026-11-28 03:10:19.641753');
INSERT INTO `locus_state_ledger` (`tenant`, `token`, `outcome`, `recorded_at`) VALUES (0x64656661756c74, 0xcf064d0e3e87d0ee7f590be9672203d4, NULL, '2026-11-28 03:10:19.652532');
