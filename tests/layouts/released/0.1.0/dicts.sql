CREATE TABLE `locus_store_threads` (
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
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: dicts layout 1';
INSERT INTO `locus_store_threads` (`tenant`, `thread_id`, `last_seq`, `first_seq`, `version`, `created_at`, `updated_at`, `expires_at`, `turn_token`, `turn_until`) VALUES (0x64656661756c74, 0x74, 3, 1, 0x3d4026e6b1f15cb250c482bd601a6962, '2026-11-28 03:10:19.557233', '2026-11-28 03:10:19.650557', NULL, NULL, NULL);
CREATE TABLE `locus_store_checkpoints` (
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
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: dicts layout 1';
INSERT INTO `locus_store_checkpoints` (`tenant`, `thread_id`, `seq`, `checkpoint_id`, `parent_seq`, `base_seq`, `continues`, `token`, `payload`, `metadata`, `metadata_keys`, `search_text`, `pending_text`, `unindexed`, `oldest_at`, `checksum`, `created_at`) VALUES (0x64656661756c74, 0x74, 1, 0x3636353837396661643734323437333739636466393461366331616362306666, NULL, 1, 0, 0x3b2d570e6b6a542460bb219392feffd4, 0x0155a00ff654000000130000007b2270223a302c2274223a302c2263223a7b226c6f67223a31377d2c226c223a5b5b226c6f67222c302c33312c312c223836316533636532653363656336663564343737633934383166646364323238225d5d7d7b2273746570223a312c226c6f67223a5b5d7d2261206c696e65206f6620746865206c6f67206f6620612074687265616422, 0x7b2273746570223a317d, CONVERT(0x5b31373038363238343135343937303839393731325d USING utf8mb4), 0x61206c696e65206f6620746865206c6f67206f66206120746872656164, NULL, NULL, NULL, 4245483602, '2026-11-28 03:10:19.558815');
INSERT INTO `locus_store_checkpoints` (`tenant`, `thread_id`, `seq`, `checkpoint_id`, `parent_seq`, `base_seq`, `continues`, `token`, `payload`, `metadata`, `metadata_keys`, `search_text`, `pending_text`, `unindexed`, `oldest_at`, `checksum`, `created_at`) VALUES (0x64656661756c74, 0x74, 2, 0x3038346661376334323364643433653962336333633264653663613433663765, 1, 2, 1, 0xa35f87ac975d2f44f70c1687f50ffb95, 0x0158ab78ea54000000130000007b2270223a302c2274223a302c2263223a7b226c6f67223a31377d2c226c223a5b5b226c6f67222c302c36332c322c223530613062353438333439393531343964383063323137653039336664653836225d5d7d7b2273746570223a322c226c6f67223a5b5d7d2261206c696e65206f6620746865206c6f67206f66206120746872656164222c2261206c696e65206f6620746865206c6f67206f6620612074687265616422, 0x7b2273746570223a327d, CONVERT(0x5b31353638303838383930323732343039343535335d USING utf8mb4), NULL, 0x61206c696e65206f6620746865206c6f67206f66206120746872656164, 1, NULL, 3961296381, '2026-11-28 03:10:19.637357');
INSERT INTO `locus_store_checkpoints` (`tenant`, `thread_id`, `seq`, `checkpoint_id`, `parent_seq`, `base_seq`, `continues`, `token`, `payload`, `metadata`, `metadata_keys`, `search_text`, `pending_text`, `unindexed`, `oldest_at`, `checksum`, `created_at`) VALUES (0x64656661756c74, 0x74, 3, 0x3833313036343333643266643464336338316236373330623531663234393038, 2, 3, 1, 0x3d4026e6b1f15cb250c482bd601a6962, 0x01f014c72254000000130000007b2270223a302c2274223a302c2263223a7b226c6f67223a31377d2c226c223a5b5b226c6f67222c302c39352c332c223964373134373830613538626133666162663935666563383161616662383161225d5d7d7b2273746570223a332c226c6f67223a5b5d7d2261206c696e65206f6620746865206c6f67206f66206120746872656164222c2261206c696e65206f6620746865206c6f67206f66206120746872656164222c2261206c696e65206f6620746865206c6f67206f6620612074687265616422, 0x7b2273746570223a337d, CONVERT(0x5b31383038393038353938343930393137373538355d USING utf8mb4), NULL, 0x61206c696e65206f6620746865206c6f67206f66206120746872656164, 1, NULL, 374829161, '2026-11-28 03:10:19.650712');
CREATE TABLE `locus_store_ledger` (
  `tenant` varchar(128) COLLATE utf8mb4_0900_bin NOT NULL,
  `token` binary(16) NOT NULL,
  `outcome` bigint DEFAULT NULL,
  `recorded_at` datetime(6) NOT NULL,
  PRIMARY KEY (`tenant`,`token`),
  KEY `age` (`recorded_at`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_bin ROW_FORMAT=DYNAMIC COMMENT='locus-mysql: dicts layout 1';
