-- A shop that lends and sells things: every type and constraint that MariaDB and Rauk both have.
SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci;
CREATE TABLE countries (
  code CHAR(2) CHARACTER SET ascii NOT NULL,
  name VARCHAR(60) NOT NULL,
  calling_code SMALLINT(5) UNSIGNED ZEROFILL NOT NULL DEFAULT 0,
  in_union BIT(1) NOT NULL DEFAULT b'0',
  PRIMARY KEY (code),
  UNIQUE KEY country_name (name)
) COMMENT='ISO''s two letters';
CREATE TABLE addresses (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT,
  street VARCHAR(120) NOT NULL,
  district VARCHAR(60) CHARACTER SET latin1 DEFAULT NULL,
  postcode VARCHAR(12) CHARACTER SET ascii NOT NULL DEFAULT '',
  country CHAR(2) CHARACTER SET ascii NOT NULL,
  phone VARBINARY(20) DEFAULT NULL,
  entrance BINARY(8) NOT NULL DEFAULT 'door\0\0\0\0',
  changed TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY (id),
  KEY by_street (street(20), postcode DESC),
  CONSTRAINT address_country FOREIGN KEY (country) REFERENCES countries (code) ON UPDATE CASCADE
) AUTO_INCREMENT=100;
CREATE TABLE branches (
  id TINYINT UNSIGNED NOT NULL AUTO_INCREMENT,
  name VARCHAR(40) NOT NULL,
  address INT UNSIGNED NOT NULL,
  manager SMALLINT UNSIGNED DEFAULT NULL COMMENT 'of this branch',
  opens TIME NOT NULL DEFAULT '09:00:00',
  opened DATE DEFAULT NULL,
  PRIMARY KEY (id),
  UNIQUE KEY one_manager (manager),
  CONSTRAINT branch_address FOREIGN KEY (address) REFERENCES addresses (id)
);
CREATE TABLE clerks (
  id SMALLINT UNSIGNED NOT NULL AUTO_INCREMENT,
  first_name VARCHAR(45) NOT NULL,
  last_name VARCHAR(45) NOT NULL,
  full_name VARCHAR(91) GENERATED ALWAYS AS (concat(first_name, ' ', last_name)) STORED,
  initials VARCHAR(2) GENERATED ALWAYS AS (concat(left(first_name, 1), left(last_name, 1))) VIRTUAL,
  branch TINYINT UNSIGNED NOT NULL,
  boss SMALLINT UNSIGNED DEFAULT NULL,
  picture MEDIUMBLOB DEFAULT NULL,
  login VARCHAR(16) COLLATE utf8mb4_bin NOT NULL,
  secret CHAR(40) CHARACTER SET latin1 COLLATE latin1_bin DEFAULT NULL,
  active TINYINT(1) NOT NULL DEFAULT 1,
  PRIMARY KEY (id),
  UNIQUE KEY login (login),
  KEY by_name (last_name, first_name),
  KEY by_full_name (full_name),
  CONSTRAINT clerk_boss FOREIGN KEY (boss) REFERENCES clerks (id) ON DELETE SET NULL,
  CONSTRAINT clerk_branch FOREIGN KEY (branch) REFERENCES branches (id) ON DELETE CASCADE ON UPDATE CASCADE,
  CONSTRAINT active_or_not CHECK (active in (0, 1))
);
ALTER TABLE branches ADD CONSTRAINT branch_manager FOREIGN KEY (manager) REFERENCES clerks (id) ON DELETE SET NULL;
CREATE TABLE customers (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT,
  name VARCHAR(90) NOT NULL,
  email VARCHAR(80) DEFAULT NULL,
  address INT UNSIGNED DEFAULT NULL,
  kind ENUM('person','firm','it''s special') NOT NULL DEFAULT 'person',
  wants SET('letters','calls','mails') DEFAULT 'letters,mails',
  preferences JSON DEFAULT NULL,
  note TEXT DEFAULT NULL,
  limit_of_credit DECIMAL(12,2) NOT NULL DEFAULT 100.00,
  rating FLOAT DEFAULT NULL,
  weight DOUBLE NOT NULL DEFAULT 0.5,
  born YEAR DEFAULT NULL,
  created DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  seen TIMESTAMP(3) NULL DEFAULT NULL,
  PRIMARY KEY (id),
  UNIQUE KEY email (email),
  KEY by_address (address),
  CONSTRAINT customer_address FOREIGN KEY (address) REFERENCES addresses (id) ON DELETE SET NULL,
  CONSTRAINT credit_is_sane CHECK (limit_of_credit between 0 and 1000000),
  CONSTRAINT mail_has_a_sign CHECK (email is null or email like '%@%')
);
CREATE TABLE items (
  id MEDIUMINT UNSIGNED NOT NULL AUTO_INCREMENT,
  title VARCHAR(200) NOT NULL,
  description TEXT NOT NULL,
  made YEAR NOT NULL DEFAULT 2000,
  days TINYINT NOT NULL DEFAULT 3,
  rate DECIMAL(4,2) UNSIGNED NOT NULL DEFAULT 4.99,
  length SMALLINT DEFAULT NULL,
  bar_code BIGINT UNSIGNED NOT NULL,
  features SET('sound','light','two words') NOT NULL DEFAULT '',
  flags BIT(12) NOT NULL DEFAULT b'101',
  leaflet LONGTEXT CHARACTER SET latin1 DEFAULT NULL,
  sample TINYBLOB DEFAULT NULL,
  PRIMARY KEY (id),
  UNIQUE KEY bar_code (bar_code),
  FULLTEXT KEY words (title, description)
);
CREATE TABLE stock (
  item MEDIUMINT UNSIGNED NOT NULL,
  branch TINYINT UNSIGNED NOT NULL,
  pieces INT NOT NULL DEFAULT 0,
  PRIMARY KEY (item, branch),
  KEY by_branch (branch),
  CONSTRAINT stock_item FOREIGN KEY (item) REFERENCES items (id) ON DELETE CASCADE,
  CONSTRAINT stock_branch FOREIGN KEY (branch) REFERENCES branches (id),
  CONSTRAINT no_debt CHECK (pieces >= 0)
);
CREATE TABLE loans (
  id BIGINT NOT NULL AUTO_INCREMENT,
  customer INT UNSIGNED NOT NULL,
  item MEDIUMINT UNSIGNED NOT NULL,
  branch TINYINT UNSIGNED NOT NULL,
  lent DATETIME NOT NULL,
  back DATETIME DEFAULT NULL,
  PRIMARY KEY (id),
  UNIQUE KEY once (lent, customer, item),
  CONSTRAINT loan_customer FOREIGN KEY (customer) REFERENCES customers (id) ON DELETE CASCADE,
  CONSTRAINT loan_stock FOREIGN KEY (item, branch) REFERENCES stock (item, branch) ON UPDATE CASCADE,
  CONSTRAINT back_later CHECK (back is null or back >= lent)
);
CREATE TABLE payments (
  loan BIGINT NOT NULL,
  number SMALLINT NOT NULL,
  amount DECIMAL(7,2) NOT NULL,
  paid TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  receipt VARCHAR(36) DEFAULT (uuid()),
  took TIME(2) DEFAULT NULL,
  PRIMARY KEY (loan, number),
  CONSTRAINT payment_loan FOREIGN KEY (loan) REFERENCES loans (id) ON DELETE CASCADE ON UPDATE CASCADE
);
CREATE TABLE log_without_key (at DATETIME(3) DEFAULT NULL, what TINYTEXT DEFAULT NULL, who MEDIUMTEXT CHARACTER SET ucs2 DEFAULT NULL) DEFAULT CHARSET=latin1;
CREATE TABLE `odd ``names``` (`select` INT NOT NULL, `a "b"` VARCHAR(20) DEFAULT 'it''s \\ \n "x"', `größe` INT DEFAULT NULL COMMENT 'ü ''x'' \\', PRIMARY KEY (`select`), KEY `k ``1` (`größe`)) COMMENT='a \\ b ''c''';

INSERT INTO countries VALUES ('AT', 'Austria', 43, b'1'), ('CH', 'Switzerland', 41, b'0'), ('CI', 'Côte d''Ivoire', 225, b'0'), ('JP', '日本', 81, b'0');
INSERT INTO addresses (id, street, district, postcode, country, phone, entrance) VALUES
  (100, 'Hauptstraße 1', 'Süd', '1010', 'AT', x'2B43000102', DEFAULT), (101, '銀座 4-5-6', NULL, '104-0061', 'JP', NULL, x'0102030405060708'), (102, 'Rue "du" Lac \\ 7', 'Genève', '1207', 'CH', '+41', 'gate');
INSERT INTO branches (id, name, address, opened) VALUES (1, 'Middle', 100, '1999-12-31'), (2, 'Far', 101, NULL);
INSERT INTO clerks (id, first_name, last_name, branch, boss, picture, login, secret) VALUES
  (1, 'Ada', 'Müller', 1, NULL, x'89504E470D0A1A0A00FF', 'ada', NULL), (2, 'Bo', 'Li', 1, 1, NULL, 'Bo', 'ÄÖÜ'), (3, 'Cy', 'O''Hara', 2, 1, '', 'bo', '');
UPDATE branches SET manager = id;
INSERT INTO customers (id, name, email, address, kind, wants, preferences, note, limit_of_credit, rating, weight, born, created, seen)
WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 600)
SELECT i, CONCAT('Customer ', i, ELT(i % 4 + 1, ' ä', ' 日', ' 😀', '')), IF(i % 7 = 0, NULL, CONCAT('c', i, '@example.org')), ELT(i % 4 + 1, 100, 101, 102, NULL), i % 3 + 1, i % 8,
  IF(i % 5 = 0, NULL, JSON_OBJECT('number', i, 'list', JSON_ARRAY(i, 'x"y', NULL, TRUE), 'rate', 1.5)), ELT(i % 3 + 1, NULL, '', 'line 1\nline 2\ttab \\ ''quote'' "double"'),
  i * 3.25, i / 4, i * 1e-5, 1970 + i % 50, TIMESTAMPADD(MICROSECOND, i * 12345, '2024-02-28 23:59:59.5'), IF(i % 2, '2024-03-31 12:30:00.125', NULL) FROM n;
INSERT INTO items (id, title, description, made, days, rate, length, bar_code, features, flags, leaflet, sample)
WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 300)
SELECT i, CONCAT('Thing number ', i), REPEAT(CONCAT('A description of thing ', i, '. '), i % 40 + 1), 1950 + i % 70, i % 9 - 2, (i % 90) + 0.99, NULLIF(i % 200, 0), 18446744073709551615 - i, i % 8, i * 13 % 4096,
  IF(i % 50 = 0, REPEAT('Größe ', 2000), NULL), UNHEX(HEX(i)) FROM n;
INSERT INTO stock SELECT items.id, branches.id, items.id * 7 % 30 FROM items, branches;
INSERT INTO loans (id, customer, item, branch, lent, back)
WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 900)
SELECT i * 3, i % 600 + 1, i % 300 + 1, i % 2 + 1, TIMESTAMPADD(MINUTE, i * 97, '2023-10-28 22:00:00'), IF(i % 6 = 0, NULL, TIMESTAMPADD(MINUTE, i * 97 + 1440, '2023-10-28 22:00:00')) FROM n;
INSERT INTO payments (loan, number, amount, paid, receipt, took) SELECT id, 1, id % 500 / 3, TIMESTAMPADD(SECOND, id, '2024-03-31 00:59:00.000001'), MD5(id), SEC_TO_TIME(id * 11 - 20000) FROM loans;
INSERT INTO log_without_key VALUES ('2024-01-01 00:00:00.999', 'a', 'ü'), (NULL, NULL, NULL), (NULL, NULL, NULL);
INSERT INTO `odd ``names``` VALUES (1, DEFAULT, NULL), (2, NULL, 5);

CREATE VIEW customer_list AS SELECT c.id AS ID, c.name AS name, a.street AS street, n.name AS country, IF(c.kind = 'firm', 'yes', '') AS is_firm FROM customers c LEFT JOIN addresses a ON c.address = a.id LEFT JOIN countries n ON a.country = n.code;
CREATE VIEW sales_by_branch AS SELECT b.name AS branch, COUNT(*) AS number, SUM(p.amount) AS total FROM payments p JOIN loans l ON p.loan = l.id JOIN branches b ON l.branch = b.id GROUP BY b.name;
CREATE SQL SECURITY INVOKER VIEW cheap_items AS SELECT id, title, rate FROM items WHERE rate < 10 WITH CASCADED CHECK OPTION;
