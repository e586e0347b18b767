-- The people of a firm, where they have worked and what they earned: many small rows under composite keys.
SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci;
CREATE TABLE people (
  number INT NOT NULL,
  born DATE NOT NULL,
  first_name VARCHAR(14) NOT NULL,
  last_name VARCHAR(16) NOT NULL,
  sex ENUM('M','F','X') DEFAULT NULL,
  hired DATE NOT NULL DEFAULT (curdate()),
  PRIMARY KEY (number),
  KEY by_last_name (last_name),
  CONSTRAINT hired_after_birth CHECK (hired > born)
);
CREATE TABLE departments (
  code CHAR(4) NOT NULL,
  name VARCHAR(40) NOT NULL,
  parent CHAR(4) DEFAULT NULL,
  PRIMARY KEY (code),
  UNIQUE KEY name (name),
  CONSTRAINT department_parent FOREIGN KEY (parent) REFERENCES departments (code)
);
CREATE TABLE leads (
  person INT NOT NULL,
  department CHAR(4) NOT NULL,
  since DATE NOT NULL,
  till DATE NOT NULL DEFAULT '9999-01-01',
  PRIMARY KEY (person, department),
  KEY department (department),
  CONSTRAINT lead_person FOREIGN KEY (person) REFERENCES people (number) ON DELETE CASCADE,
  CONSTRAINT lead_department FOREIGN KEY (department) REFERENCES departments (code) ON DELETE CASCADE
);
CREATE TABLE works_in LIKE leads;
ALTER TABLE works_in ADD CONSTRAINT works_person FOREIGN KEY (person) REFERENCES people (number) ON DELETE CASCADE,
  ADD CONSTRAINT works_department FOREIGN KEY (department) REFERENCES departments (code) ON DELETE CASCADE;
CREATE TABLE titles (
  person INT NOT NULL, title VARCHAR(50) NOT NULL, since DATE NOT NULL, till DATE DEFAULT NULL,
  PRIMARY KEY (person, title, since),
  CONSTRAINT title_person FOREIGN KEY (person) REFERENCES people (number) ON DELETE CASCADE
);
CREATE TABLE salaries (
  person INT NOT NULL, amount INT NOT NULL, since DATE NOT NULL, till DATE NOT NULL,
  PRIMARY KEY (person, since),
  CONSTRAINT salary_person FOREIGN KEY (person) REFERENCES people (number) ON DELETE CASCADE,
  CONSTRAINT salary_positive CHECK (amount > 0)
);
INSERT INTO people (number, born, first_name, last_name, sex, hired)
WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
SELECT 10000 + i, DATE_ADD('1952-02-01', INTERVAL i * 13 DAY), CONCAT(ELT(i % 5 + 1, 'Åse', 'Bob', 'Çelik', 'Dao', 'Eve'), i % 97), CONCAT('Name', i % 211), ELT(i % 4 + 1, 'M', 'F', 'X', NULL), DATE_ADD('1985-01-01', INTERVAL i * 8 DAY) FROM n;
INSERT INTO departments VALUES ('d001', 'Firm', NULL), ('d002', 'Sales', 'd001'), ('d003', 'Research', 'd001'), ('d004', 'Labs', 'd003');
INSERT INTO leads SELECT number, CONCAT('d00', number % 4 + 1), hired, '9999-01-01' FROM people WHERE number % 100 = 0;
INSERT INTO works_in (person, department, since) SELECT number, CONCAT('d00', number % 4 + 1), hired FROM people;
INSERT INTO titles SELECT number, ELT(number % 3 + 1, 'Engineer', 'Senior Engineer', 'Manager'), hired, NULL FROM people;
INSERT INTO salaries
WITH RECURSIVE years AS (SELECT 0 AS y UNION ALL SELECT y + 1 FROM years WHERE y < 9)
SELECT number, 30000 + number % 1000 * 10 + y * 777, DATE_ADD(hired, INTERVAL y YEAR), DATE_ADD(hired, INTERVAL y + 1 YEAR) FROM people, years;
CREATE VIEW last_work AS SELECT person, MAX(since) AS since, MAX(till) AS till FROM works_in GROUP BY person;
CREATE VIEW works_now AS SELECT w.person AS person, w.department AS department FROM works_in w JOIN last_work l ON w.person = l.person AND w.since = l.since AND w.till = l.till;
