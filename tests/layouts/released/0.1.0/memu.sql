CREATE TABLE `resources` (
  `id` varchar(36) COLLATE utf8mb4_0900_bin NOT NULL,
  `url` varchar(2048) COLLATE utf8mb4_0900_bin NOT NULL,
  `modality` varchar(64) COLLATE utf8mb4_0900_bin NOT NULL,
  `local_path` varchar(1024) COLLATE utf8mb4_0900_bin NOT NULL,
  `caption` longtext COLLATE utf8mb4_0900_bin,
  `track` varchar(64) COLLATE utf8mb4_0900_bin DEFAULT NULL,
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
INSERT INTO `resources` (`id`, `url`, `modality`, `local_path`, `caption`, `track`, `embedding`, `created_at`, `updated_at`, `locus_tenant`, `locus_checksum`, `locus_scope_checksums`, `user_id`) VALUES (0x64373334623035352d356538322d346136322d613838652d343933373632653231663830, 0x7465612e6d64, '', 0x7465612e6d64, NULL, 0x776f726b7370616365, 0x0000003f0000803e, '2026-11-26 22:35:53.296682', '2026-11-26 22:35:53.296682', 0x64656661756c74, 3988373933, CONVERT(0x7b22757365725f6964223a20323636373836313739307d USING utf8mb4), 0x616461);
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
INSERT INTO `memory_items` (`id`, `resource_id`, `memory_type`, `summary`, `embedding`, `happened_at`, `extra`, `created_at`, `updated_at`, `locus_tenant`, `locus_checksum`, `locus_scope_checksums`, `locus_scope`, `locus_hash`, `locus_dims`, `locus_mark`, `user_id`) VALUES (0x37383339343232332d353336352d343435312d393764342d663366316638623562313330, NULL, 0x70726f66696c65, 0x416461206c696b657320746561, 0x0000003f0000803e, NULL, CONVERT(0x7b7d USING utf8mb4), '2026-11-26 22:35:53.198081', '2026-11-26 22:35:53.198081', 0x64656661756c74, 1850105517, CONVERT(0x7b22757365725f6964223a20313730383037333536337d USING utf8mb4), 0x6d832c1009cd1f8c29480b76b6992c58, NULL, 2, 30817415220441903, 0x616461);
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
CREATE TABLE `recall_files` (
  `id` varchar(36) COLLATE utf8mb4_0900_bin NOT NULL,
  `name` varchar(255) COLLATE utf8mb4_0900_bin NOT NULL,
  `track` varchar(64) COLLATE utf8mb4_0900_bin NOT NULL,
  `description` longtext COLLATE utf8mb4_0900_bin NOT NULL,
  `content` longtext COLLATE utf8mb4_0900_bin,
  `embedding` mediumblob,
  `created_at` datetime(6) NOT NULL,
  `updated_at` datetime(6) NOT NULL,
  `locus_tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `locus_checksum` int unsigned NOT NULL,
  `locus_scope_checksums` json NOT NULL,
  `locus_scope` binary(16) NOT NULL,
  `user_id` varchar(255) COLLATE utf8mb4_0900_bin DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `locus_once` (`locus_scope`,`track`,`name`),
  KEY `scope_user_id` (`locus_tenant`,`user_id`,`track`,`name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: memu layout 1';
INSERT INTO `recall_files` (`id`, `name`, `track`, `description`, `content`, `embedding`, `created_at`, `updated_at`, `locus_tenant`, `locus_checksum`, `locus_scope_checksums`, `locus_scope`, `user_id`) VALUES (0x38323039396134362d333861322d346465622d383066352d626435653462393563306562, 0x6472696e6b73, 0x6d656d6f7279, 0x5768617420416461206472696e6b73, NULL, 0x0000003f0000803e, '2026-11-26 22:35:53.287540', '2026-11-26 22:35:53.287540', 0x64656661756c74, 1087567372, CONVERT(0x7b22757365725f6964223a20313030373735383236387d USING utf8mb4), 0x6d832c1009cd1f8c29480b76b6992c58, 0x616461);
CREATE TABLE `recall_file_segments` (
  `id` varchar(36) COLLATE utf8mb4_0900_bin NOT NULL,
  `recall_file_id` varchar(36) COLLATE utf8mb4_0900_bin NOT NULL,
  `track` varchar(64) COLLATE utf8mb4_0900_bin NOT NULL,
  `text` longtext COLLATE utf8mb4_0900_bin NOT NULL,
  `embedding` mediumblob,
  `created_at` datetime(6) NOT NULL,
  `updated_at` datetime(6) NOT NULL,
  `locus_tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `locus_checksum` int unsigned NOT NULL,
  `locus_scope_checksums` json NOT NULL,
  `user_id` varchar(255) COLLATE utf8mb4_0900_bin DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `recall_file_id` (`recall_file_id`,`locus_tenant`),
  KEY `scope_user_id` (`locus_tenant`,`user_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: memu layout 1';
INSERT INTO `recall_file_segments` (`id`, `recall_file_id`, `track`, `text`, `embedding`, `created_at`, `updated_at`, `locus_tenant`, `locus_checksum`, `locus_scope_checksums`, `user_id`) VALUES (0x35346536633236302d306530302d343765642d386330642d643133353634343064383663, 0x38323039396134362d333861322d346465622d383066352d626435653462393563306562, 0x6d656d6f7279, 0x416461206c696b657320746561, 0x0000003f0000803e, '2026-11-26 22:35:53.294783', '2026-11-26 22:35:53.294783', 0x64656661756c74, 561591055, CONVERT(0x7b22757365725f6964223a20313238333536313137327d USING utf8mb4), 0x616461);
CREATE TABLE `memu_ledger` (
  `tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `token` binary(16) NOT NULL,
  `outcome` bigint DEFAULT NULL,
  `recorded_at` datetime(6) NOT NULL,
  PRIMARY KEY (`tenant`,`token`),
  KEY `age` (`recorded_at`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: memu layout 1';
INSERT INTO `memu_ledger` (`tenant`, `token`, `outcome`, `recorded_at`) VALUES (0x64656661756c74, 0x0be02a01a0895e05597051417d6ac25d, NULL, '2026-11-26 22:35:53.289493');
INSERT INTO `memu_ledger` (`tenant`, `token`, `outcome`, `recorded_at`) VALUES (0x64656661756c74, 0x14d88d88a0e1effcef99f0178f29bd6e, NULL, '2026-11-26 22:35:53.204306');
INSERT INTO `memu_ledger` (`tenant`, `token`, `outcome`, `recorded_at`) VALUES (0x64656661756c74, 0x5e0c66f33b25c955d18bca4438bf0212, NULL, '2026-11-26 22:35:53.299249');
INSERT INTO `memu_ledger` (`tenant`, `token`, `outcome`, `recorded_at`) VALUES (0x64656661756c74, 0x6ea53deca0eca5cd725267b97688893c, NULL, '2026-11-26 22:35:53.295816');
