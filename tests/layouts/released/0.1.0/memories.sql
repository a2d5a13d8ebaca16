CREATE TABLE `locus_memory_scopes` (
  `tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `path` varbinary(1000) NOT NULL,
  `stamp` bigint unsigned NOT NULL,
  `purged` bigint unsigned NOT NULL,
  `token` binary(16) NOT NULL,
  `earlier` binary(16) DEFAULT NULL,
  PRIMARY KEY (`tenant`,`path`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: memories layout 1';
INSERT INTO `locus_memory_scopes` (`tenant`, `path`, `stamp`, `purged`, `token`, `earlier`) VALUES (0x64656661756c74, 0x75736572730061646100, 849150743148313, 849150743148313, 0xf6ac6a16aeeb4e6965cf6a206781b3d4, NULL);
CREATE TABLE `locus_memory_items` (
  `tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `path` varbinary(1000) NOT NULL,
  `item_key` varbinary(1000) NOT NULL,
  `value` longtext COLLATE utf8mb4_0900_bin NOT NULL,
  `metadata` longtext COLLATE utf8mb4_0900_bin,
  `version` bigint unsigned NOT NULL,
  `ttl_us` bigint unsigned DEFAULT NULL,
  `search_text` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci,
  `tenant_word` varchar(4) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci GENERATED ALWAYS AS (if((`search_text` is null),NULL,repeat(convert(char(227,(144 + (crc32(`tenant`) & 31)),(128 + ((crc32(`tenant`) >> 5) & 63)),227,(144 + ((crc32(`tenant`) >> 11) & 31)),(128 + ((crc32(`tenant`) >> 16) & 63))) using utf8mb4),2))) STORED,
  `pending_text` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci,
  `unindexed` tinyint DEFAULT NULL,
  `created_at` datetime(6) NOT NULL,
  `updated_at` datetime(6) NOT NULL,
  `expires_at` datetime(6) DEFAULT NULL,
  `checksum` int unsigned NOT NULL,
  PRIMARY KEY (`tenant`,`path`,`item_key`),
  KEY `expiry` (`expires_at`),
  KEY `pending` (`unindexed`),
  FULLTEXT KEY `words` (`tenant_word`,`search_text`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: memories layout 1';
INSERT INTO `locus_memory_items` (`tenant`, `path`, `item_key`, `value`, `metadata`, `version`, `ttl_us`, `search_text`, `pending_text`, `unindexed`, `created_at`, `updated_at`, `expires_at`, `checksum`) VALUES (0x64656661756c74, 0x75736572730061646100, 0x746561, 0x7b2274657874223a22416461206c696b657320746561227d, NULL, 1, NULL, NULL, 0x416461206c696b657320746561, 1, '2026-11-28 03:12:23.148904', '2026-11-28 03:12:23.148904', NULL, 1042760157);
CREATE TABLE `locus_memory_vectors` (
  `tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `path` varbinary(1000) NOT NULL,
  `item_key` varbinary(1000) NOT NULL,
  `number` smallint unsigned NOT NULL,
  `digest` binary(16) DEFAULT NULL,
  `embedding` mediumblob NOT NULL,
  `checksum` int unsigned NOT NULL,
  PRIMARY KEY (`tenant`,`path`,`item_key`,`number`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: memories layout 1';
INSERT INTO `locus_memory_vectors` (`tenant`, `path`, `item_key`, `number`, `digest`, `embedding`, `checksum`) VALUES (0x64656661756c74, 0x75736572730061646100, 0x746561, 0, NULL, 0x0000003f0000803e, 3547731273);
CREATE TABLE `locus_memory_codes` (
  `tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `path` varbinary(1000) NOT NULL,
  `item_key` varbinary(1000) NOT NULL,
  `number` smallint unsigned NOT NULL,
  `stamp` bigint unsigned NOT NULL,
  `code` mediumblob,
  PRIMARY KEY (`tenant`,`path`,`item_key`,`number`),
  KEY `changes` (`tenant`,`path`,`stamp`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: memories layout 1';
INSERT INTO `locus_memory_codes` (`tenant`, `path`, `item_key`, `number`, `stamp`, `code`) VALUES (0x64656661756c74, 0x75736572730061646100, 0x746561, 0, 849150743148313, 0x080402814020703fb54647814020603fa8f4979b77e3e13f7f40);
CREATE TABLE `locus_memory_signs` (
  `owner` varbinary(1513) NOT NULL,
  `item_key` varbinary(1000) NOT NULL,
  `number` smallint unsigned NOT NULL,
  `expires` tinyint NOT NULL,
  `dims` smallint unsigned NOT NULL,
  `sig` varbinary(2048) NOT NULL,
  PRIMARY KEY (`owner`,`item_key`,`number`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: memories layout 1';
INSERT INTO `locus_memory_signs` (`owner`, `item_key`, `number`, `expires`, `dims`, `sig`) VALUES (0x64656661756c740075736572730061646100, 0x746561, 0, 0, 2, 0xc0);
CREATE TABLE `locus_memory_ledger` (
  `tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `token` binary(16) NOT NULL,
  `outcome` bigint DEFAULT NULL,
  `recorded_at` datetime(6) NOT NULL,
  PRIMARY KEY (`tenant`,`token`),
  KEY `age` (`recorded_at`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: memories layout 1';
INSERT INTO `locus_memory_ledger` (`tenant`, `token`, `outcome`, `recorded_at`) VALUES (0x64656661756c74, 0xf6ac6a16aeeb4e6965cf6a206781b3d4, 1, '2026-11-28 03:12:23.151058');
