-- Comments, quotes and several statements, as migrations have them.
CREATE TABLE person (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  name VARCHAR(${length}) NOT NULL COMMENT 'a name; with ''quotes''',
  born DATE,
  kind ENUM('a', 'b') NOT NULL DEFAULT 'a',
  UNIQUE KEY uk_name (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
/*!40101 SET NAMES utf8mb4 */;
CREATE TABLE `order` (
  id BIGINT AUTO_INCREMENT PRIMARY KEY, person INT UNSIGNED NOT NULL, total DECIMAL(10,2) CHECK (total >= 0), note TEXT,
  CONSTRAINT order_person FOREIGN KEY (person) REFERENCES person (id) ON DELETE CASCADE
);
INSERT INTO person (name) VALUES ('semi;colon'), ("double"), ('back\'slash');
