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
INSERT INTO `locus_threads` (`tenant`, `thread_id`, `last_seq`, `first_seq`, `version`, `created_at`, `updated_at`, `expires_at`, `turn_token`, `turn_until`) VALUES (0x64656661756c74, 0x74, 1, 1, 0xa4d30e99c589c7bb3f27ca9081ea8efb, '2026-11-24 01:11:05.490871', '2026-11-24 01:11:05.490871', NULL, NULL, NULL);
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
  KEY `metadata_pairs` ((cast(`metadata_keys` as unsigned array)),`tenant`),
  FULLTEXT KEY `words` (`search_text`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: agents layout 1';
INSERT INTO `locus_checkpoints` (`tenant`, `thread_id`, `seq`, `checkpoint_id`, `parent_seq`, `base_seq`, `continues`, `token`, `payload`, `metadata`, `metadata_keys`, `search_text`, `pending_text`, `unindexed`, `oldest_at`, `checksum`, `created_at`) VALUES (0x64656661756c74, 0x74, 1, 0x6666303566333565656335633430613738353861313364363964316662393638, NULL, 1, 0, 0xa4d30e99c589c7bb3f27ca9081ea8efb, 0x020b5c164bed96c96ac33010865dfa224167a768b12c2997be44215008c1d192189cb8c45d28250fd2b7ed2f2571d65e7a2be4620ff28c46f678fe6fbeefb26c7c9f655f116ef1cba5abc5b3ed3ec732ac552cc1990cb348a8a332f442ca14dcd3590e4b46ee969aabfac8638614929e1f0452b0d802670a290416f7cdaa18420fa0d1526c4ee07635614e73864d18a49d972e302e65b0ca056a95365a3b519495a7dc975a934964e0e909102e645ee4445a1f68a914e365a542259c358a5ba10c3594d12053707fb8981583010eafb516a52fa811ca0aa154e51c0fce39ab82e4335392c90442d0a315c690a1e0e77c3d520a54f046d47d1f9c566bd71b37a25e40f31f1095b1212f9e281b3136a2c583326849f58c5eb824eaa52bda2bbaf60d883f61433a5faded621aea260eb0a4816c4f5dbd065ed20c4ca0a639996368c12d8e46473e3043bd727decbc6967587b6d5d9ba628d81684dfc6252fd829c13edb7bed3f48dca4ee16d17b3b8a7898dddb6c09e60198edca93df757fbcf06b3fa8bbc1f273f08237f1cd23829276fe15053f, NULL, NULL, NULL, 0x5768657265206973206d792070617263656c3f, 1, NULL, 849838420, '2026-11-24 01:11:05.494708');
CREATE TABLE `locus_ledger` (
  `tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `token` binary(16) NOT NULL,
  `outcome` bigint DEFAULT NULL,
  `recorded_at` datetime(6) NOT NULL,
  PRIMARY KEY (`tenant`,`token`),
  KEY `age` (`recorded_at`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: agents layout 1';
