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
  KEY `recent` (`tenant`,`updated_at`,`thread_id`),
  KEY `expiry` (`expires_at`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: agents layout 1';
INSERT INTO `locus_threads` (`tenant`, `thread_id`, `last_seq`, `first_seq`, `version`, `created_at`, `updated_at`, `expires_at`, `turn_token`, `turn_until`) VALUES (0x64656661756c74, 0x74, 1, 1, 0x82d6e40a17c0775a08734d085e3acffe, '2026-11-28 03:10:19.708472', '2026-11-28 03:10:19.708472', NULL, NULL, NULL);
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
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: agents layout 1';
INSERT INTO `locus_checkpoints` (`tenant`, `thread_id`, `seq`, `checkpoint_id`, `parent_seq`, `base_seq`, `continues`, `token`, `payload`, `metadata`, `metadata_keys`, `search_text`, `pending_text`, `unindexed`, `oldest_at`, `checksum`, `created_at`) VALUES (0x64656661756c74, 0x74, 1, 0x6565363838333830373466623463353862313736313930313362623332653866, NULL, 1, 0, 0x82d6e40a17c0775a08734d085e3acffe, 0x0260303bc0ed56496ac3401054c8478cce7698459ae5944f040c0113a4596c816c053b0b21f821f96daa27b62c2fb9e416f04533eae99e6ed4eaaafabac9b2e96d967d12b9d1974b4f87b39f7b86306c34b5e004863931d4a00d3d90720df754cbc164cb9da9bd888f8232a490747e0048c969044e10524a18f7c3aa39420f44634ab93d22b78b09c76ccc710907b433612b6dbd3482d54a2aebeba2664e70d8a30cacca67c481c715205c96e302c126dac8ac101573ac308a79c364f465e51d634af914dc174759210c50bc3146aa50302bb59352ebca7b11bdf74ec752d456e5b31980a0a7566c261c0d3fe5d70152a0835746ddcfc171b776b37165d433d2fc078ccaf94498072621a92193ef0aa50a5d3e6216ce19f5dcb5e4897cfb01c49fb005a41346bf35e11dcb1ce2044b0bec7e8a4d4b92368fcdcaf72f2f9def9242222f3a25b5b48ff0cd1aac94a4733e6fbb7a60c77613aab55bf43725994539f2dc77ab0007246a360bf27cad97e03b82d3244d42fe3bee4f17611d46cd66b4fc183d234168ef1198b0f3af54f00d, NULL, NULL, NULL, 0x5768657265206973206d792070617263656c3f, 1, NULL, 1662650043, '2026-11-28 03:10:19.709887');
CREATE TABLE `locus_ledger` (
  `tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `token` binary(16) NOT NULL,
  `outcome` bigint DEFAULT NULL,
  `recorded_at` datetime(6) NOT NULL,
  PRIMARY KEY (`tenant`,`token`),
  KEY `age` (`recorded_at`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: agents layout 1';
