ALTER TABLE person ADD COLUMN email VARCHAR(100) AFTER name, ADD KEY by_email (email), MODIFY born DATETIME(3) NULL;
UPDATE person SET email = CONCAT(REPLACE(name, ' ', ''), '@example.org') WHERE id > 0;
INSERT INTO `order` (person, total) SELECT id, id * 1.5 FROM person;
DELIMITER //
INSERT INTO `order` (person, total, note) VALUES (1, 7, 'a; b')//
DELIMITER ;
