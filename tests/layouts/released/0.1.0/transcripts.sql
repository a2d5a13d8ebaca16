CREATE TABLE `locus_transcripts` (
  `tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `kind` varbinary(32) NOT NULL,
  `collection` varbinary(800) NOT NULL,
  `name` varbinary(800) NOT NULL,
  `part` varbinary(800) NOT NULL,
  `sid` binary(16) NOT NULL,
  `revision` bigint unsigned NOT NULL,
  `prior` bigint unsigned NOT NULL,
  `tag` varbinary(255) DEFAULT NULL,
  `scope` varbinary(800) DEFAULT NULL,
  `state` longblob,
  `items` bigint NOT NULL,
  `size_bytes` bigint NOT NULL,
  `last_seq` bigint unsigned NOT NULL,
  `created_at` datetime(6) NOT NULL,
  `expires_at` datetime(6) DEFAULT NULL,
  `checksum` int unsigned NOT NULL,
  PRIMARY KEY (`tenant`,`kind`,`collection`,`name`,`part`),
  KEY `recent` (`tenant`,`revision`),
  KEY `scope` (`tenant`,`kind`,`scope`,`revision`),
  KEY `expiry` (`expires_at`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: transcripts layout 1';
INSERT INTO `locus_transcripts` (`tenant`, `kind`, `collection`, `name`, `part`, `sid`, `revision`, `prior`, `tag`, `scope`, `state`, `items`, `size_bytes`, `last_seq`, `created_at`, `expires_at`, `checksum`) VALUES (0x64656661756c74, 0x737570706f72742d626f74, 0x7469636b657473, 0x34373131, '', 0x0521c9103fa73fd8b029b1cda104d44a, 1795482666215965, 0, NULL, NULL, NULL, 1, 31, 1, '2026-11-24 01:11:06.215965', NULL, 822178847);
CREATE TABLE `locus_transcript_items` (
  `tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `sid` binary(16) NOT NULL,
  `seq` bigint unsigned NOT NULL,
  `item_id` varbinary(255) DEFAULT NULL,
  `content` longblob NOT NULL,
  `created_at` datetime(6) NOT NULL,
  `checksum` int unsigned NOT NULL,
  PRIMARY KEY (`tenant`,`sid`,`seq`),
  UNIQUE KEY `identity` (`tenant`,`item_id`,`sid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: transcripts layout 1';
INSERT INTO `locus_transcript_items` (`tenant`, `sid`, `seq`, `item_id`, `content`, `created_at`, `checksum`) VALUES (0x64656661756c74, 0x0521c9103fa73fd8b029b1cda104d44a, 1, 0x6d6573736167652d31, 0x017b2274657874223a225768657265206973206d792070617263656c3f227d, '2026-11-24 01:11:06.216259', 3099249108);
CREATE TABLE `locus_transcript_ledger` (
  `tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `token` binary(16) NOT NULL,
  `outcome` bigint DEFAULT NULL,
  `recorded_at` datetime(6) NOT NULL,
  PRIMARY KEY (`tenant`,`token`),
  KEY `age` (`recorded_at`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: transcripts layout 1';
INSERT INTO `locus_transcript_ledger` (`tenant`, `token`, `outcome`, `recorded_at`) VALUES (0x64656661756c74, 0xe0ce3784286d86f64c350a9f7c5eb7e8, 1795482666215965, '2026-11-24 01:11:06.216494');
