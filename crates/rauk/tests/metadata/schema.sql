CREATE TABLE kinds (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT COMMENT 'the key',
  a_tiny TINYINT NOT NULL DEFAULT 1, a_small SMALLINT UNSIGNED, a_medium MEDIUMINT DEFAULT NULL, a_big BIGINT UNSIGNED DEFAULT 18446744073709551615,
  a_zero INT(8) ZEROFILL, a_bool BOOLEAN NOT NULL DEFAULT TRUE, a_bit BIT(5) DEFAULT b'101',
  a_decimal DECIMAL(20,6) NOT NULL DEFAULT 1.5, a_float FLOAT, a_double DOUBLE DEFAULT 2.5,
  a_date DATE DEFAULT '2024-02-29', a_time TIME(3), a_datetime DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
  a_stamp TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, a_year YEAR DEFAULT 2024,
  a_char CHAR(10) NOT NULL DEFAULT '', a_varchar VARCHAR(100) COLLATE utf8mb4_bin DEFAULT 'it''s', a_latin VARCHAR(30) CHARACTER SET latin1, a_ascii CHAR(3) CHARACTER SET ascii,
  a_binary BINARY(4), a_varbinary VARBINARY(16), a_text TEXT, a_tinytext TINYTEXT, a_longtext LONGTEXT CHARACTER SET latin1, a_blob BLOB, a_longblob LONGBLOB,
  an_enum ENUM('small','large','x''l') NOT NULL DEFAULT 'large', a_set SET('a','b','c') DEFAULT 'a,c',
  PRIMARY KEY (id), UNIQUE KEY by_decimal (a_decimal), KEY by_two (a_small, a_varchar), KEY by_text (a_text(20)) COMMENT 'a prefix', FULLTEXT KEY words (a_longtext)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci COMMENT='all kinds of columns';
CREATE TABLE no_key (a INT, b VARCHAR(10) NOT NULL) CHARSET=latin1;
CREATE TABLE computed (id INT NOT NULL PRIMARY KEY, a INT NOT NULL, twice INT GENERATED ALWAYS AS (a * 2) VIRTUAL, thrice INT GENERATED ALWAYS AS (a * 3) STORED, hidden INT DEFAULT 7 INVISIBLE, KEY by_twice (twice));
CREATE TABLE checked (id INT NOT NULL PRIMARY KEY, a INT, b INT, CONSTRAINT a_positive CHECK (a > 0), CONSTRAINT a_below_b CHECK (a < b));
CREATE TABLE parents (id INT NOT NULL, part INT NOT NULL, code VARCHAR(8) NOT NULL, PRIMARY KEY (id, part), UNIQUE KEY by_code (code));
CREATE TABLE children (
  id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, parent INT, part INT, code VARCHAR(8), boss INT,
  CONSTRAINT child_parent FOREIGN KEY (parent, part) REFERENCES parents (id, part) ON DELETE CASCADE ON UPDATE CASCADE,
  CONSTRAINT child_code FOREIGN KEY (code) REFERENCES parents (code) ON DELETE SET NULL,
  CONSTRAINT child_boss FOREIGN KEY (boss) REFERENCES children (id)
);
CREATE TABLE `odd ``name``` (`a b` INT NOT NULL, `sélect` INT, PRIMARY KEY (`a b`), UNIQUE KEY `k 1` (`sélect`));
CREATE VIEW a_view AS SELECT id, code, UPPER(code) AS upper_code FROM parents WHERE id > 3;
CREATE SQL SECURITY INVOKER VIEW checked_view (x, y) AS SELECT id, a FROM checked WHERE a > 1 WITH LOCAL CHECK OPTION;
CREATE VIEW a_count AS SELECT parent, COUNT(*) AS number FROM children GROUP BY parent;
INSERT INTO parents VALUES (1, 1, 'one'), (2, 1, 'two');
INSERT INTO children (parent, part, code) VALUES (1, 1, 'one'), (2, 1, NULL);
CREATE USER reader@localhost;
CREATE USER writer@'10.%';
GRANT SELECT, SHOW VIEW ON metadata_rows.* TO reader@localhost WITH GRANT OPTION;
GRANT INSERT, UPDATE ON metadata_rows.parents TO writer@'10.%';
GRANT SELECT (id, code), UPDATE (code) ON metadata_rows.parents TO reader@localhost;
GRANT PROCESS ON *.* TO writer@'10.%';
