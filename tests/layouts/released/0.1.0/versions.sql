CREATE TABLE `locus_version_threads` (
  `tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `thread_id` varchar(512) COLLATE utf8mb4_0900_bin NOT NULL,
  `last_seq` bigint unsigned NOT NULL,
  `epoch` binary(8) NOT NULL,
  `created_at` datetime(6) NOT NULL,
  `updated_at` datetime(6) NOT NULL,
  `expires_at` datetime(6) DEFAULT NULL,
  PRIMARY KEY (`tenant`,`thread_id`),
  KEY `recent` (`tenant`,`updated_at`),
  KEY `expiry` (`expires_at`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: versions layout 1';
INSERT INTO `locus_version_threads` (`tenant`, `thread_id`, `last_seq`, `epoch`, `created_at`, `updated_at`, `expires_at`) VALUES (0x64656661756c74, 0x74, 1, 0x2ee291399311619b, '2026-11-24 01:11:05.686416', '2026-11-24 01:11:05.686416', NULL);
CREATE TABLE `locus_versions` (
  `tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `thread_id` varchar(512) COLLATE utf8mb4_0900_bin NOT NULL,
  `ns_key` binary(16) NOT NULL,
  `seq` bigint unsigned NOT NULL AUTO_INCREMENT,
  `version_key` binary(16) NOT NULL,
  `parent_key` binary(16) DEFAULT NULL,
  `checkpoint_id` varchar(512) COLLATE utf8mb4_0900_bin NOT NULL,
  `parent_id` varchar(512) COLLATE utf8mb4_0900_bin DEFAULT NULL,
  `ns` mediumtext COLLATE utf8mb4_0900_bin NOT NULL,
  `stored_seq` bigint unsigned DEFAULT NULL,
  `hidden` tinyint NOT NULL,
  `needs` tinyint NOT NULL,
  `unlinked` tinyint NOT NULL DEFAULT '0',
  `sources` json NOT NULL,
  `tokens` varbinary(32) NOT NULL,
  `payload` longblob NOT NULL,
  `metadata` mediumtext COLLATE utf8mb4_0900_bin,
  `run_key` binary(16) DEFAULT NULL,
  `chunk` longblob,
  `created_at` datetime(6) NOT NULL,
  PRIMARY KEY (`tenant`,`thread_id`,`ns_key`,`seq`),
  UNIQUE KEY `named` (`tenant`,`thread_id`,`version_key`),
  KEY `drawn` (`seq`),
  KEY `newest` (`tenant`,`thread_id`,`seq`),
  KEY `runs` (`tenant`,`run_key`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: versions layout 1';
INSERT INTO `locus_versions` (`tenant`, `thread_id`, `ns_key`, `seq`, `version_key`, `parent_key`, `checkpoint_id`, `parent_id`, `ns`, `stored_seq`, `hidden`, `needs`, `unlinked`, `sources`, `tokens`, `payload`, `metadata`, `run_key`, `chunk`, `created_at`) VALUES (0x64656661756c74, 0x74, 0xe3b0c44298fc1c149afbf4c8996fb924, 1, 0xf91fb3073ebb4c89a0dff34c76ccdede, NULL, 0x31663165376133652d633438662d366634302d626666652d343632393039633466663161, NULL, '', 1099511627777, 0, 0, 0, CONVERT(0x5b5d USING utf8mb4), 0x1bf003140c39deb260f6cd7c6028754c, 0x02a979538b7dd5310e83300c05d0f42aec46fea9a149cec19a218578ac7a01ee8e61881822560f96ecffa49f9c734f02119ac072196aac90f37e85ef5ba8a89ff2aeb44a509a5598beaa9564f691e32aaab01537280079591809483c8d138710d1a0f4749421a113848dfed66b560516cd6f3bafcebd5f9c82f7d701, 0x7b22736f75726365223a22696e707574222c2273746570223a307d, NULL, NULL, '2026-11-24 01:11:05.686752');
CREATE TABLE `locus_version_parts` (
  `tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `thread_id` varchar(512) COLLATE utf8mb4_0900_bin NOT NULL,
  `part` bigint unsigned NOT NULL,
  `chunk` longblob NOT NULL,
  PRIMARY KEY (`tenant`,`thread_id`,`part`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: versions layout 1';
CREATE TABLE `locus_version_writes` (
  `tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `thread_id` varchar(512) COLLATE utf8mb4_0900_bin NOT NULL,
  `version_key` binary(16) NOT NULL,
  `task_key` binary(16) NOT NULL,
  `idx` int NOT NULL,
  `task_id` varchar(512) COLLATE utf8mb4_0900_bin NOT NULL,
  `task_path` mediumtext COLLATE utf8mb4_0900_bin NOT NULL,
  `channel` mediumtext COLLATE utf8mb4_0900_bin NOT NULL,
  `payload` longblob NOT NULL,
  `created_at` datetime(6) NOT NULL,
  PRIMARY KEY (`tenant`,`thread_id`,`version_key`,`task_key`,`idx`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: versions layout 1';
INSERT INTO `locus_version_writes` (`tenant`, `thread_id`, `version_key`, `task_key`, `idx`, `task_id`, `task_path`, `channel`, `payload`, `created_at`) VALUES ('', '', 0x000660fb627d27f908b0f89b65fc1358, 0x00000000000000000000000000000000, 0, '', '', '', '', '2026-11-24 01:11:05.691959');
INSERT INTO `locus_version_writes` (`tenant`, `thread_id`, `version_key`, `task_key`, `idx`, `task_id`, `task_path`, `channel`, `payload`, `created_at`) VALUES (0x64656661756c74, 0x74, 0xf91fb3073ebb4c89a0dff34c76ccdede, 0x7afaa346b4bf92bf9dc21e9ae8098874, 0, 0x7461736b2d31, '', 0x61, 0x0166aae8df07006d73677061636b02, '2026-11-24 01:11:05.691959');
CREATE TABLE `locus_version_ledger` (
  `tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `token` binary(16) NOT NULL,
  `outcome` bigint DEFAULT NULL,
  `recorded_at` datetime(6) NOT NULL,
  PRIMARY KEY (`tenant`,`token`),
  KEY `age` (`recorded_at`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: versions layout 1';
