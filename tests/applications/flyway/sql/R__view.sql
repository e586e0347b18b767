CREATE OR REPLACE VIEW spent AS SELECT p.name, SUM(o.total) AS total FROM person p JOIN `order` o ON o.person = p.id GROUP BY p.name;
