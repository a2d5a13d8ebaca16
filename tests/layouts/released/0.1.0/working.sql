CREATE TABLE `locus_working_sessions` (
  `tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `session_id` varchar(512) COLLATE utf8mb4_0900_bin NOT NULL,
  `sid` binary(16) NOT NULL,
  `stamp` bigint unsigned NOT NULL,
  `prior` bigint unsigned NOT NULL,
  `replaced` bigint NOT NULL,
  `ttl_us` bigint unsigned DEFAULT NULL,
  `variables` bigint NOT NULL,
  `notes` bigint NOT NULL,
  `size_bytes` bigint NOT NULL,
  `last_note` bigint unsigned NOT NULL,
  `created_at` datetime(6) NOT NULL,
  `expires_at` datetime(6) DEFAULT NULL,
  PRIMARY KEY (`tenant`,`session_id`),
  KEY `expiry` (`expires_at`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: working layout 1';
INSERT INTO `locus_working_sessions` (`tenant`, `session_id`, `sid`, `stamp`, `prior`, `replaced`, `ttl_us`, `variables`, `notes`, `size_bytes`, `last_note`, `created_at`, `expires_at`) VALUES (0x64656661756c74, 0x73, 0x2b4b8a93879ce162c673a0a47a8846f1, 1795730117388236, 1795730117356594, 0, NULL, 2, 1, 213, 1, '2026-11-26 21:55:17.285517', NULL);
CREATE TABLE `locus_working_entries` (
  `tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `sid` binary(16) NOT NULL,
  `kind` tinyint unsigned NOT NULL,
  `name` varchar(512) COLLATE utf8mb4_0900_bin NOT NULL,
  `value` longblob,
  `canonical` varbinary(32) DEFAULT NULL,
  `size_bytes` int unsigned NOT NULL,
  `version` bigint unsigned NOT NULL,
  `used` bigint unsigned NOT NULL,
  `expires_at` datetime(6) DEFAULT NULL,
  `checksum` int unsigned NOT NULL,
  PRIMARY KEY (`tenant`,`sid`,`kind`,`name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: working layout 1';
INSERT INTO `locus_working_entries` (`tenant`, `sid`, `kind`, `name`, `value`, `canonical`, `size_bytes`, `version`, `used`, `expires_at`, `checksum`) VALUES (0x64656661756c74, 0x2b4b8a93879ce162c673a0a47a8846f1, 1, 0x63697479, 0x22426f6e6e22, 0x22426f6e6e22, 10, 1795730117285518, 1795730117285518, NULL, 3561368110);
INSERT INTO `locus_working_entries` (`tenant`, `sid`, `kind`, `name`, `value`, `canonical`, `size_bytes`, `version`, `used`, `expires_at`, `checksum`) VALUES (0x64656661756c74, 0x2b4b8a93879ce162c673a0a47a8846f1, 1, 0x7365617473, 0x32, 0x32, 6, 1795730117285518, 1795730117285518, NULL, 2299869955);
INSERT INTO `locus_working_entries` (`tenant`, `sid`, `kind`, `name`, `value`, `canonical`, `size_bytes`, `version`, `used`, `expires_at`, `checksum`) VALUES (0x64656661756c74, 0x2b4b8a93879ce162c673a0a47a8846f1, 2, '', 0x7b227461736b5f6964223a2274726970222c22737461747573223a2270656e64696e67222c2263757272656e745f73746570223a302c22746f74616c5f7374657073223a6e756c6c2c2270726f6772657373223a302e302c226465736372697074696f6e223a22222c226572726f72223a6e756c6c2c22737461727465645f6174223a6e756c6c2c22757064617465645f6174223a22323032362d31312d32365432313a35353a31372e3334383238355a222c2264617461223a7b7d7d, NULL, 189, 1795730117356594, 1795730117356594, NULL, 1401891029);
INSERT INTO `locus_working_entries` (`tenant`, `sid`, `kind`, `name`, `value`, `canonical`, `size_bytes`, `version`, `used`, `expires_at`, `checksum`) VALUES (0x64656661756c74, 0x2b4b8a93879ce162c673a0a47a8846f1, 3, 0x3030303030303030303030303030303030303031, 0x2261206e6f746522, NULL, 8, 1795730117339483, 1795730117339483, NULL, 513252197);
CREATE TABLE `locus_working_checkpoints` (
  `tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `sid` binary(16) NOT NULL,
  `checkpoint_id` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `stamp` bigint unsigned NOT NULL,
  `label` text COLLATE utf8mb4_0900_bin,
  `variables` bigint NOT NULL,
  `notes` bigint NOT NULL,
  `size_bytes` bigint NOT NULL,
  `created_at` datetime(6) NOT NULL,
  `checksum` int unsigned NOT NULL,
  PRIMARY KEY (`tenant`,`sid`,`checkpoint_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: working layout 1';
INSERT INTO `locus_working_checkpoints` (`tenant`, `sid`, `checkpoint_id`, `stamp`, `label`, `variables`, `notes`, `size_bytes`, `created_at`, `checksum`) VALUES (0x64656661756c74, 0x2b4b8a93879ce162c673a0a47a8846f1, 0x6532643134366164653665373466373139316631633464613739616238363062, 1795730117388236, 0x6265666f7265, 2, 1, 213, '2026-11-26 21:55:17.388236', 2288104258);
CREATE TABLE `locus_working_history` (
  `tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `sid` binary(16) NOT NULL,
  `kind` tinyint unsigned NOT NULL,
  `name` varchar(512) COLLATE utf8mb4_0900_bin NOT NULL,
  `version` bigint unsigned NOT NULL,
  `value` longblob,
  `canonical` varbinary(32) DEFAULT NULL,
  `size_bytes` int unsigned NOT NULL,
  `expires_at` datetime(6) DEFAULT NULL,
  `checksum` int unsigned NOT NULL,
  PRIMARY KEY (`tenant`,`sid`,`kind`,`name`,`version`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: working layout 1';
INSERT INTO `locus_working_history` (`tenant`, `sid`, `kind`, `name`, `version`, `value`, `canonical`, `size_bytes`, `expires_at`, `checksum`) VALUES (0x64656661756c74, 0x2b4b8a93879ce162c673a0a47a8846f1, 1, 0x63697479, 1795730117285518, 0x22426f6e6e22, 0x22426f6e6e22, 10, NULL, 729849236);
INSERT INTO `locus_working_history` (`tenant`, `sid`, `kind`, `name`, `version`, `value`, `canonical`, `size_bytes`, `expires_at`, `checksum`) VALUES (0x64656661756c74, 0x2b4b8a93879ce162c673a0a47a8846f1, 1, 0x7365617473, 1795730117285518, 0x32, 0x32, 6, NULL, 1993575609);
INSERT INTO `locus_working_history` (`tenant`, `sid`, `kind`, `name`, `version`, `value`, `canonical`, `size_bytes`, `expires_at`, `checksum`) VALUES (0x64656661756c74, 0x2b4b8a93879ce162c673a0a47a8846f1, 2, '', 1795730117356594, 0x7b227461736b5f6964223a2274726970222c22737461747573223a2270656e64696e67222c2263757272656e745f73746570223a302c22746f74616c5f7374657073223a6e756c6c2c2270726f6772657373223a302e302c226465736372697074696f6e223a22222c226572726f72223a6e756c6c2c22737461727465645f6174223a6e756c6c2c22757064617465645f6174223a22323032362d31312d32365432313a35353a31372e3334383238355a222c2264617461223a7b7d7d, NULL, 189, NULL, 2890442195);
INSERT INTO `locus_working_history` (`tenant`, `sid`, `kind`, `name`, `version`, `value`, `canonical`, `size_bytes`, `expires_at`, `checksum`) VALUES (0x64656661756c74, 0x2b4b8a93879ce162c673a0a47a8846f1, 3, 0x3030303030303030303030303030303030303031, 1795730117339483, 0x2261206e6f746522, NULL, 8, NULL, 3780137738);
CREATE TABLE `locus_working_ledger` (
  `tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `token` binary(16) NOT NULL,
  `outcome` bigint DEFAULT NULL,
  `recorded_at` datetime(6) NOT NULL,
  PRIMARY KEY (`tenant`,`token`),
  KEY `age` (`recorded_at`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: working layout 1';
INSERT INTO `locus_working_ledger` (`tenant`, `token`, `outcome`, `recorded_at`) VALUES (0x64656661756c74, 0x4d19f47fb62b6e1d16f52e5fc6b56062, NULL, '2026-11-26 21:55:17.344587');
INSERT INTO `locus_working_ledger` (`tenant`, `token`, `outcome`, `recorded_at`) VALUES (0x64656661756c74, 0x51f0dd035aee98c5d523a0076abb392e, NULL, '2026-11-26 21:55:17.392104');
INSERT INTO `locus_working_ledger` (`tenant`, `token`, `outcome`, `recorded_at`) VALUES (0x64656661756c74, 0xa4d3495fd92445f6747f59154c50bea1, NULL, '2026-11-26 21:55:17.301200');
INSERT INTO `locus_working_ledger` (`tenant`, `token`, `outcome`, `recorded_at`) VALUES (0x64656661756c74, 0xbca92f609749dcf0b15a7a18d3ea62f3, NULL, '2026-11-26 21:55:17.357517');
