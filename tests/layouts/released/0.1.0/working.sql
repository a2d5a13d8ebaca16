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
INSERT INTO `locus_working_sessions` (`tenant`, `session_id`, `sid`, `stamp`, `prior`, `replaced`, `ttl_us`, `variables`, `notes`, `size_bytes`, `last_note`, `created_at`, `expires_at`) VALUES (0x64656661756c74, 0x73, 0x8c6c5a2d1b568f02be0e350af54c55a8, 1795482666060711, 1795482666050110, 0, NULL, 2, 1, 213, 1, '2026-11-24 01:11:05.997395', NULL);
CREATE TABLE `locus_working_entries` (
  `tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `sid` binary(16) NOT NULL,
  `kind` tinyint unsigned NOT NULL,
  `name` varchar(512) COLLATE utf8mb4_0900_bin NOT NULL,
  `value` longblob,
  `likeness` varbinary(32) DEFAULT NULL,
  `size_bytes` int unsigned NOT NULL,
  `version` bigint unsigned NOT NULL,
  `used` bigint unsigned NOT NULL,
  `expires_at` datetime(6) DEFAULT NULL,
  `checksum` int unsigned NOT NULL,
  PRIMARY KEY (`tenant`,`sid`,`kind`,`name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: working layout 1';
INSERT INTO `locus_working_entries` (`tenant`, `sid`, `kind`, `name`, `value`, `likeness`, `size_bytes`, `version`, `used`, `expires_at`, `checksum`) VALUES (0x64656661756c74, 0x8c6c5a2d1b568f02be0e350af54c55a8, 1, 0x63697479, 0x22426f6e6e22, 0x22426f6e6e22, 10, 1795482665997396, 1795482665997396, NULL, 3561368110);
INSERT INTO `locus_working_entries` (`tenant`, `sid`, `kind`, `name`, `value`, `likeness`, `size_bytes`, `version`, `used`, `expires_at`, `checksum`) VALUES (0x64656661756c74, 0x8c6c5a2d1b568f02be0e350af54c55a8, 1, 0x7365617473, 0x32, 0x32, 6, 1795482665997396, 1795482665997396, NULL, 2299869955);
INSERT INTO `locus_working_entries` (`tenant`, `sid`, `kind`, `name`, `value`, `likeness`, `size_bytes`, `version`, `used`, `expires_at`, `checksum`) VALUES (0x64656661756c74, 0x8c6c5a2d1b568f02be0e350af54c55a8, 2, '', 0x7b227461736b5f6964223a2274726970222c22737461747573223a2270656e64696e67222c2263757272656e745f73746570223a302c22746f74616c5f7374657073223a6e756c6c2c2270726f6772657373223a302e302c226465736372697074696f6e223a22222c226572726f72223a6e756c6c2c22737461727465645f6174223a6e756c6c2c22757064617465645f6174223a22323032362d31312d32345430313a31313a30362e3034353735335a222c2264617461223a7b7d7d, NULL, 189, 1795482666050110, 1795482666050110, NULL, 2959439372);
INSERT INTO `locus_working_entries` (`tenant`, `sid`, `kind`, `name`, `value`, `likeness`, `size_bytes`, `version`, `used`, `expires_at`, `checksum`) VALUES (0x64656661756c74, 0x8c6c5a2d1b568f02be0e350af54c55a8, 3, 0x3030303030303030303030303030303030303031, 0x2261206e6f746522, NULL, 8, 1795482666044000, 1795482666044000, NULL, 513252197);
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
INSERT INTO `locus_working_checkpoints` (`tenant`, `sid`, `checkpoint_id`, `stamp`, `label`, `variables`, `notes`, `size_bytes`, `created_at`, `checksum`) VALUES (0x64656661756c74, 0x8c6c5a2d1b568f02be0e350af54c55a8, 0x3839303336363664666531613465646661333263626137303433353765383135, 1795482666060711, 0x6265666f7265, 2, 1, 213, '2026-11-24 01:11:06.060711', 3641540229);
CREATE TABLE `locus_working_history` (
  `tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `sid` binary(16) NOT NULL,
  `kind` tinyint unsigned NOT NULL,
  `name` varchar(512) COLLATE utf8mb4_0900_bin NOT NULL,
  `version` bigint unsigned NOT NULL,
  `value` longblob,
  `likeness` varbinary(32) DEFAULT NULL,
  `size_bytes` int unsigned NOT NULL,
  `expires_at` datetime(6) DEFAULT NULL,
  `checksum` int unsigned NOT NULL,
  PRIMARY KEY (`tenant`,`sid`,`kind`,`name`,`version`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: working layout 1';
INSERT INTO `locus_working_history` (`tenant`, `sid`, `kind`, `name`, `version`, `value`, `likeness`, `size_bytes`, `expires_at`, `checksum`) VALUES (0x64656661756c74, 0x8c6c5a2d1b568f02be0e350af54c55a8, 1, 0x63697479, 1795482665997396, 0x22426f6e6e22, 0x22426f6e6e22, 10, NULL, 3066142337);
INSERT INTO `locus_working_history` (`tenant`, `sid`, `kind`, `name`, `version`, `value`, `likeness`, `size_bytes`, `expires_at`, `checksum`) VALUES (0x64656661756c74, 0x8c6c5a2d1b568f02be0e350af54c55a8, 1, 0x7365617473, 1795482665997396, 0x32, 0x32, 6, NULL, 3952250796);
INSERT INTO `locus_working_history` (`tenant`, `sid`, `kind`, `name`, `version`, `value`, `likeness`, `size_bytes`, `expires_at`, `checksum`) VALUES (0x64656661756c74, 0x8c6c5a2d1b568f02be0e350af54c55a8, 2, '', 1795482666050110, 0x7b227461736b5f6964223a2274726970222c22737461747573223a2270656e64696e67222c2263757272656e745f73746570223a302c22746f74616c5f7374657073223a6e756c6c2c2270726f6772657373223a302e302c226465736372697074696f6e223a22222c226572726f72223a6e756c6c2c22737461727465645f6174223a6e756c6c2c22757064617465645f6174223a22323032362d31312d32345430313a31313a30362e3034353735335a222c2264617461223a7b7d7d, NULL, 189, NULL, 3538007241);
INSERT INTO `locus_working_history` (`tenant`, `sid`, `kind`, `name`, `version`, `value`, `likeness`, `size_bytes`, `expires_at`, `checksum`) VALUES (0x64656661756c74, 0x8c6c5a2d1b568f02be0e350af54c55a8, 3, 0x3030303030303030303030303030303030303031, 1795482666044000, 0x2261206e6f746522, NULL, 8, NULL, 2081649150);
CREATE TABLE `locus_working_ledger` (
  `tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `token` binary(16) NOT NULL,
  `outcome` bigint DEFAULT NULL,
  `recorded_at` datetime(6) NOT NULL,
  PRIMARY KEY (`tenant`,`token`),
  KEY `age` (`recorded_at`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: working layout 1';
INSERT INTO `locus_working_ledger` (`tenant`, `token`, `outcome`, `recorded_at`) VALUES (0x64656661756c74, 0x2ee8c5f7370ae0a59135e8d861d1b4f3, NULL, '2026-11-24 01:11:06.079035');
INSERT INTO `locus_working_ledger` (`tenant`, `token`, `outcome`, `recorded_at`) VALUES (0x64656661756c74, 0x606b341a3483e81da344e388680f9e03, NULL, '2026-11-24 01:11:06.044858');
INSERT INTO `locus_working_ledger` (`tenant`, `token`, `outcome`, `recorded_at`) VALUES (0x64656661756c74, 0x7c68c26ce2f2d9a50c43b842ecbcf3d7, NULL, '2026-11-24 01:11:06.037063');
INSERT INTO `locus_working_ledger` (`tenant`, `token`, `outcome`, `recorded_at`) VALUES (0x64656661756c74, 0x98c70e5c6a6e418645bdd2fbe178e93e, NULL, '2026-11-24 01:11:06.058966');
