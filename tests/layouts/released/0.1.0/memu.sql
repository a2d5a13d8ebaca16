CREATE TABLE `resources` (
  `id` varchar(36) COLLATE utf8mb4_0900_bin NOT NULL,
  `url` varchar(2048) COLLATE utf8mb4_0900_bin NOT NULL,
  `modality` varchar(64) COLLATE utf8mb4_0900_bin NOT NULL,
  `local_path` varchar(1024) COLLATE utf8mb4_0900_bin NOT NULL,
  `caption` longtext COLLATE utf8mb4_0900_bin,
  `embedding` mediumblob,
  `created_at` datetime(6) NOT NULL,
  `updated_at` datetime(6) NOT NULL,
  `locus_tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `locus_checksum` int unsigned NOT NULL,
  `locus_scope_checksums` json NOT NULL,
  `user_id` varchar(255) COLLATE utf8mb4_0900_bin DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `scope_user_id` (`locus_tenant`,`user_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: memu layout 1';
CREATE TABLE `memory_categories` (
  `id` varchar(36) COLLATE utf8mb4_0900_bin NOT NULL,
  `name` varchar(255) COLLATE utf8mb4_0900_bin NOT NULL,
  `description` longtext COLLATE utf8mb4_0900_bin NOT NULL,
  `embedding` mediumblob,
  `summary` longtext COLLATE utf8mb4_0900_bin,
  `created_at` datetime(6) NOT NULL,
  `updated_at` datetime(6) NOT NULL,
  `locus_tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `locus_checksum` int unsigned NOT NULL,
  `locus_scope_checksums` json NOT NULL,
  `locus_scope` binary(16) NOT NULL,
  `user_id` varchar(255) COLLATE utf8mb4_0900_bin DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `locus_once` (`locus_scope`,`name`),
  KEY `scope_user_id` (`locus_tenant`,`user_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: memu layout 1';
CREATE TABLE `memory_items` (
  `id` varchar(36) COLLATE utf8mb4_0900_bin NOT NULL,
  `resource_id` varchar(36) COLLATE utf8mb4_0900_bin DEFAULT NULL,
  `memory_type` varchar(32) COLLATE utf8mb4_0900_bin NOT NULL,
  `summary` longtext COLLATE utf8mb4_0900_bin NOT NULL,
  `embedding` mediumblob,
  `happened_at` datetime(6) DEFAULT NULL,
  `extra` json NOT NULL,
  `created_at` datetime(6) NOT NULL,
  `updated_at` datetime(6) NOT NULL,
  `locus_tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `locus_checksum` int unsigned NOT NULL,
  `locus_scope_checksums` json NOT NULL,
  `locus_scope` binary(16) NOT NULL,
  `locus_hash` char(16) COLLATE utf8mb4_0900_bin DEFAULT NULL,
  `locus_dims` smallint unsigned DEFAULT NULL,
  `locus_mark` bigint unsigned DEFAULT NULL,
  `locus_ref` varchar(128) COLLATE utf8mb4_0900_bin GENERATED ALWAYS AS (left(json_unquote(json_extract(`extra`,_utf8mb4'$.ref_id')),128)) VIRTUAL,
  `user_id` varchar(255) COLLATE utf8mb4_0900_bin DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `locus_once` (`locus_scope`,`locus_hash`),
  KEY `resource_id` (`resource_id`),
  KEY `scope_user_id` (`locus_tenant`,`user_id`,`locus_dims`,`locus_mark`),
  KEY `locus_refs` (`locus_ref`,`locus_tenant`),
  CONSTRAINT `memory_items_ibfk_1` FOREIGN KEY (`resource_id`) REFERENCES `resources` (`id`) ON DELETE CASCADE
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: memu layout 1';
INSERT INTO `memory_items` (`id`, `resource_id`, `memory_type`, `summary`, `embedding`, `happened_at`, `extra`, `created_at`, `updated_at`, `locus_tenant`, `locus_checksum`, `locus_scope_checksums`, `locus_scope`, `locus_hash`, `locus_dims`, `locus_mark`, `user_id`) VALUES (0x63343932393432382d313265662d343462312d616136642d633831326339653034623462, NULL, 0x70726f66696c65, 0x416461206c696b657320746561, 0x0000003f0000803e, NULL, CONVERT(0x7b7d USING utf8mb4), '2026-11-24 01:11:06.407210', '2026-11-24 01:11:06.407210', 0x64656661756c74, 3232419392, CONVERT(0x7b22757365725f6964223a20313135333036343834317d USING utf8mb4), 0x6d832c1009cd1f8c29480b76b6992c58, NULL, 2, 28212427820779936, 0x616461);
CREATE TABLE `category_items` (
  `id` varchar(36) COLLATE utf8mb4_0900_bin NOT NULL,
  `item_id` varchar(36) COLLATE utf8mb4_0900_bin NOT NULL,
  `category_id` varchar(36) COLLATE utf8mb4_0900_bin NOT NULL,
  `created_at` datetime(6) NOT NULL,
  `updated_at` datetime(6) NOT NULL,
  `locus_tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `locus_checksum` int unsigned DEFAULT NULL,
  `locus_scope_checksums` json DEFAULT NULL,
  `user_id` varchar(255) COLLATE utf8mb4_0900_bin DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `idx_category_items_unique` (`item_id`,`category_id`),
  KEY `category_id` (`category_id`),
  KEY `scope_user_id` (`locus_tenant`,`user_id`),
  CONSTRAINT `category_items_ibfk_1` FOREIGN KEY (`item_id`) REFERENCES `memory_items` (`id`) ON DELETE CASCADE,
  CONSTRAINT `category_items_ibfk_2` FOREIGN KEY (`category_id`) REFERENCES `memory_categories` (`id`) ON DELETE CASCADE
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: memu layout 1';
CREATE TABLE `memu_ledger` (
  `tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `token` binary(16) NOT NULL,
  `outcome` bigint DEFAULT NULL,
  `recorded_at` datetime(6) NOT NULL,
  PRIMARY KEY (`tenant`,`token`),
  KEY `age` (`recorded_at`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: memu layout 1';
INSERT INTO `memu_ledger` (`tenant`, `token`, `outcome`, `recorded_at`) VALUES (0x64656661756c74, 0x80e4b443c9bb3d6789580f801a825d95, NULL, '2026-11-24 01:11:06.420426');
