CREATE TABLE `locus_store_threads` (
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
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: dicts layout 1';
INSERT INTO `locus_store_threads` (`tenant`, `thread_id`, `last_seq`, `first_seq`, `version`, `created_at`, `updated_at`, `expires_at`, `turn_token`, `turn_until`) VALUES (0x64656661756c74, 0x74, 3, 1, 0x6419e3a7921f5c5726ca4b671122bb1c, '2026-11-28 03:12:22.776443', '2026-11-28 03:12:22.882440', NULL, NULL, NULL);
CREATE TABLE `locus_store_checkpoints` (
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
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: dicts layout 1';
INSERT INTO `locus_store_checkpoints` (`tenant`, `thread_id`, `seq`, `checkpoint_id`, `parent_seq`, `base_seq`, `continues`, `token`, `payload`, `metadata`, `metadata_keys`, `search_text`, `pending_text`, `unindexed`, `oldest_at`, `checksum`, `created_at`) VALUES (0x64656661756c74, 0x74, 1, 0x6338313932353338346232343432316461666362363464383232396533386339, NULL, 1, 0, 0x3b3d2468ca3a2ac639974aeab0206a8c, 0x01bf3f75a054000000130000007b2270223a302c2274223a302c2263223a7b226c6f67223a31377d2c226c223a5b5b226c6f67222c302c33312c312c223836316533636532653363656336663564343737633934383166646364323238225d5d7d7b2273746570223a312c226c6f67223a5b5d7d2261206c696e65206f6620746865206c6f67206f6620612074687265616422, 0x7b2273746570223a317d, CONVERT(0x5b31373038363238343135343937303839393731325d USING utf8mb4), NULL, 0x61206c696e65206f6620746865206c6f67206f66206120746872656164, 1, NULL, 1369489795, '2026-11-28 03:12:22.778158');
INSERT INTO `locus_store_checkpoints` (`tenant`, `thread_id`, `seq`, `checkpoint_id`, `parent_seq`, `base_seq`, `continues`, `token`, `payload`, `metadata`, `metadata_keys`, `search_text`, `pending_text`, `unindexed`, `oldest_at`, `checksum`, `created_at`) VALUES (0x64656661756c74, 0x74, 2, 0x3330626362363965343632363430386538343532663462333264323637663564, 1, 2, 1, 0x87bc83dc9e34bc696cc34592bd4afccf, 0x01fcc495c154000000130000007b2270223a302c2274223a302c2263223a7b226c6f67223a31377d2c226c223a5b5b226c6f67222c302c36332c322c223530613062353438333439393531343964383063323137653039336664653836225d5d7d7b2273746570223a322c226c6f67223a5b5d7d2261206c696e65206f6620746865206c6f67206f66206120746872656164222c2261206c696e65206f6620746865206c6f67206f6620612074687265616422, 0x7b2273746570223a327d, CONVERT(0x5b31353638303838383930323732343039343535335d USING utf8mb4), NULL, 0x61206c696e65206f6620746865206c6f67206f66206120746872656164, 1, NULL, 2863497649, '2026-11-28 03:12:22.865443');
INSERT INTO `locus_store_checkpoints` (`tenant`, `thread_id`, `seq`, `checkpoint_id`, `parent_seq`, `base_seq`, `continues`, `token`, `payload`, `metadata`, `metadata_keys`, `search_text`, `pending_text`, `unindexed`, `oldest_at`, `checksum`, `created_at`) VALUES (0x64656661756c74, 0x74, 3, 0x3062303932303431343339313463353262386538316433323731323938306139, 2, 3, 1, 0x6419e3a7921f5c5726ca4b671122bb1c, 0x018a88746a54000000130000007b2270223a302c2274223a302c2263223a7b226c6f67223a31377d2c226c223a5b5b226c6f67222c302c39352c332c223964373134373830613538626133666162663935666563383161616662383161225d5d7d7b2273746570223a332c226c6f67223a5b5d7d2261206c696e65206f6620746865206c6f67206f66206120746872656164222c2261206c696e65206f6620746865206c6f67206f66206120746872656164222c2261206c696e65206f6620746865206c6f67206f6620612074687265616422, 0x7b2273746570223a337d, CONVERT(0x5b31383038393038353938343930393137373538355d USING utf8mb4), NULL, 0x61206c696e65206f6620746865206c6f67206f66206120746872656164, 1, NULL, 1785372314, '2026-11-28 03:12:22.882654');
CREATE TABLE `locus_store_ledger` (
  `tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `token` binary(16) NOT NULL,
  `outcome` bigint DEFAULT NULL,
  `recorded_at` datetime(6) NOT NULL,
  PRIMARY KEY (`tenant`,`token`),
  KEY `age` (`recorded_at`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: dicts layout 1';
