CREATE TABLE `locus_threads` (
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
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: agents layout 1';
INSERT INTO `locus_threads` (`tenant`, `thread_id`, `last_seq`, `first_seq`, `version`, `created_at`, `updated_at`, `expires_at`, `turn_token`, `turn_until`) VALUES (0x64656661756c74, 0x74, 1, 1, 0x2c6c15780746459f79f266f43e55f2b5, '2026-11-28 03:12:22.960424', '2026-11-28 03:12:22.960424', NULL, NULL, NULL);
CREATE TABLE `locus_checkpoints` (
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
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: agents layout 1';
INSERT INTO `locus_checkpoints` (`tenant`, `thread_id`, `seq`, `checkpoint_id`, `parent_seq`, `base_seq`, `continues`, `token`, `payload`, `metadata`, `metadata_keys`, `search_text`, `pending_text`, `unindexed`, `oldest_at`, `checksum`, `created_at`) VALUES (0x64656661756c74, 0x74, 1, 0x3835383236363730303161643439373161623065663466643036333134343064, NULL, 1, 0, 0x2c6c15780746459f79f266f43e55f2b5, 0x0249151501ed964b6ac33010865d7a91e0b55bf4b4e46e7a8942a010422c8d13831397b80f4ac9417adbfe52123baf6eba2b64638bd18c47f678fe6fbe6f92647c9b245f016ee1cbc5abc3def63987326c4d28c1890cf340a88332f442ca0ddce3590653a177a6e6a23e8a902186c4fd4120250f2d70a29052c2b86f56c3113a80c66ab93982dbc58419cb381ec221ed924a414c95a5b245ee72a194a44acf880bcd14d2a793c0c0e313205cea4c65a9f19a5ba1493952b6f422979562aed0b9f30698a518dc1f2e64c56080c35b6b654e8a15d238298d99792f2aefbd3395166591a7930984a0472b16771c053fe5eb8152a08257a2eefbe0b85abbdeb812f50c9aff80a89cdf09fbc42486e70721ee0d33868967f4c239512fb82a195cfb06c49fb049e74d5bc2d8d16ced16d3aa6ec21c9b3650efa9afd75856f5caf7f6301c85ede0f35ed3076e730c34b839b07c88039de2081d74721b8dcdd7d6b771bcda3b6eb3a5dd5bb904df62aaba5b60b19b49084bdfae28fd5df7c70b5ad3a8ee46cbcfd10b5e819a470445edfc2b0a7e00, NULL, NULL, NULL, 0x5768657265206973206d792070617263656c3f, 1, NULL, 1270071691, '2026-11-28 03:12:22.962306');
CREATE TABLE `locus_ledger` (
  `tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `token` binary(16) NOT NULL,
  `outcome` bigint DEFAULT NULL,
  `recorded_at` datetime(6) NOT NULL,
  PRIMARY KEY (`tenant`,`token`),
  KEY `age` (`recorded_at`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: agents layout 1';
