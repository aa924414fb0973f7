BEGIN TRANSACTION;
CREATE TABLE entries (
	number INTEGER NOT NULL, 
	time TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	token TEXT, 
	request TEXT, 
	epsilon TEXT, 
	delta TEXT, 
	rho TEXT, 
	rho_delta TEXT, 
	totals TEXT NOT NULL, 
	promise TEXT, 
	tables TEXT NOT NULL, 
	budget TEXT, 
	note TEXT NOT NULL, 
	answers INTEGER, 
	answer TEXT, 
	answer_digest TEXT, 
	previous TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	PRIMARY KEY (number), 
	UNIQUE (token), 
	UNIQUE (answers)
);
INSERT INTO "entries" VALUES(0,'2026-11-28T01:00:00+00:00','genesis',NULL,NULL,NULL,NULL,NULL,NULL,'{}',NULL,'{}',NULL,'{"format":2,"ledger":"a8fbed83368df1c56c2b20eb7b037c1c"}',NULL,NULL,NULL,'0000000000000000000000000000000000000000000000000000000000000000','02f1fa121e93c80ea4d12fa377fc6df2d4a0261c570d50ceb5413809583fb048');
INSERT INTO "entries" VALUES(1,'2026-11-28T01:00:00+00:00','account',NULL,NULL,NULL,NULL,NULL,NULL,'{"dataset:patient":{"delta":"0","epsilon":"0","rho":"0","rho_delta":"0"}}','{"neighbours":"add-remove","unit":"patient"}','{}','{"delta":"1/1000000","epsilon":"2"}','{}',NULL,NULL,NULL,'02f1fa121e93c80ea4d12fa377fc6df2d4a0261c570d50ceb5413809583fb048','52053afad7b052a8403a022afccf0e199d8c33dd2625c3e87cd86414b8631c83');
INSERT INTO "entries" VALUES(2,'2026-11-28T01:00:00+00:00','account',NULL,NULL,NULL,NULL,NULL,NULL,'{"analyst:ann:patient":{"delta":"0","epsilon":"0","rho":"0","rho_delta":"0"}}','{"neighbours":"add-remove","unit":"patient"}','{}','{"delta":"0","epsilon":"1"}','{}',NULL,NULL,NULL,'52053afad7b052a8403a022afccf0e199d8c33dd2625c3e87cd86414b8631c83','c192a4e6e0b9cd35280d0c5d610630a895ddfe97882873ff693205d7c8fed5f3');
INSERT INTO "entries" VALUES(3,'2026-11-28T01:00:00+00:00','charge','a','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','142857142857142858','0','10204081632653062','0','{"analyst:ann:patient":{"delta":"0","epsilon":"142857142857142858","rho":"10204081632653062","rho_delta":"0"},"dataset:patient":{"delta":"0","epsilon":"142857142857142858","rho":"10204081632653062","rho_delta":"0"}}','{"neighbours":"add-remove","unit":"patient"}','{"visits":{"by":"column patient_id","promise":{"neighbours":"add-remove","unit":"patient"},"sources":{"file:///data/visits.csv":"1:7"}}}',NULL,'{"query":"one"}',NULL,NULL,NULL,'c192a4e6e0b9cd35280d0c5d610630a895ddfe97882873ff693205d7c8fed5f3','9ec50507a13ac0eef1b4a2d77edb28c42e53bf66f004325c6147baafbe04881a');
INSERT INTO "entries" VALUES(4,'2026-11-28T01:00:00+00:00','answer',NULL,NULL,NULL,NULL,NULL,NULL,'{}',NULL,'{"visits":{"by":"column patient_id","promise":{"neighbours":"add-remove","unit":"patient"},"sources":{"file:///data/visits.csv":"1:7"}}}',NULL,'{}',3,'answer of three','2b6ae76814ea34241b319d9a05caf5bb69ff411b2befa5ab6689f17f41b69386','9ec50507a13ac0eef1b4a2d77edb28c42e53bf66f004325c6147baafbe04881a','ec422f657b91a6af19309f9ea162e4f4eb10c5885d0bf8e0b09f6316ee3564c8');
INSERT INTO "entries" VALUES(5,'2026-11-28T01:00:00+00:00','charge','b','bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb','infinite','0','20000000000000000','0','{"dataset:patient":{"delta":"0","epsilon":"infinite","rho":"30204081632653062","rho_delta":"0"}}','{"neighbours":"add-remove","unit":"patient"}','{"visits":{"by":"column patient_id","promise":{"neighbours":"add-remove","unit":"patient"},"sources":{"file:///data/visits.csv":"1:7"}}}',NULL,'{"query":"\u00e9"}',NULL,NULL,NULL,'ec422f657b91a6af19309f9ea162e4f4eb10c5885d0bf8e0b09f6316ee3564c8','333637a45f05d655d17a8bf79e4b60e45dca28a91557aacbc29ade5360914c7a');
INSERT INTO "entries" VALUES(6,'2026-11-28T01:00:00+00:00','amend',NULL,NULL,NULL,NULL,NULL,NULL,'{"analyst:ann:patient":{"delta":"0","epsilon":"142857142857142858","rho":"10204081632653062","rho_delta":"0"}}','{"neighbours":"add-remove","unit":"patient"}','{"visits":{"by":"column patient_id","promise":{"neighbours":"add-remove","unit":"patient"},"sources":{"file:///data/visits.csv":"1:7"}}}','{"delta":"0","epsilon":"3"}','{"reason":"agreed"}',NULL,NULL,NULL,'333637a45f05d655d17a8bf79e4b60e45dca28a91557aacbc29ade5360914c7a','bbc87675cb452aa36a434b2347e740fad753a11e06c0d147bd30c7e53ef599ac');
INSERT INTO "entries" VALUES(7,'2026-11-28T01:00:00+00:00','account',NULL,NULL,NULL,NULL,NULL,NULL,'{"dataset:row of visits":{"delta":"0","epsilon":"0","rho":"0","rho_delta":"0"}}','{"neighbours":"replace","unit":"row of visits"}','{"visits":{"by":"column patient_id","promise":{"neighbours":"add-remove","unit":"patient"},"sources":{"file:///data/visits.csv":"1:7"}}}','{"delta":"0","epsilon":"1"}','{}',NULL,NULL,NULL,'bbc87675cb452aa36a434b2347e740fad753a11e06c0d147bd30c7e53ef599ac','5c1c79b42726dcf1b1748c629218b4efadab18de23e15b1a13fdc9a09ef1ebdf');
INSERT INTO "entries" VALUES(8,'2026-11-28T01:00:00+00:00','charge','c','cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc','500000000000000000','0','125000000000000000','0','{"dataset:row of visits":{"delta":"0","epsilon":"500000000000000000","rho":"125000000000000000","rho_delta":"0"}}','{"neighbours":"replace","unit":"row of visits"}','{"others":{"by":"each row","promise":{"neighbours":"replace","unit":"row of visits"}},"visits":{"by":"column patient_id","promise":{"neighbours":"add-remove","unit":"patient"},"sources":{"file:///data/visits.csv":"1:7"}}}',NULL,'{"query":"three"}',NULL,NULL,NULL,'5c1c79b42726dcf1b1748c629218b4efadab18de23e15b1a13fdc9a09ef1ebdf','c6b46dd44ce159cb07993d07e435de520e9966a98271762ef7304b57d45e6779');
INSERT INTO "entries" VALUES(9,'2026-11-28T01:00:00+00:00','answer',NULL,NULL,NULL,NULL,NULL,NULL,'{}',NULL,'{"others":{"by":"each row","promise":{"neighbours":"replace","unit":"row of visits"}},"visits":{"by":"column patient_id","promise":{"neighbours":"add-remove","unit":"patient"},"sources":{"file:///data/visits.csv":"1:7"}}}',NULL,'{}',8,'answer of eight','f8901f476efcb4aa621f39988d435469888c73621d67279949c267afe83dbdb7','c6b46dd44ce159cb07993d07e435de520e9966a98271762ef7304b57d45e6779','bee6f096c06c33fbe19de65eea90ae565ee22bd9e1f413cfeecdaa8bc7f861c7');
CREATE TABLE head (
	id INTEGER NOT NULL, 
	count INTEGER NOT NULL, 
	hash TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "head" VALUES(1,10,'bee6f096c06c33fbe19de65eea90ae565ee22bd9e1f413cfeecdaa8bc7f861c7');
CREATE TABLE touches (
	account TEXT NOT NULL, 
	entry INTEGER NOT NULL, 
	sets_budget BOOLEAN NOT NULL, 
	PRIMARY KEY (account, entry), 
	FOREIGN KEY(entry) REFERENCES entries (number)
)
 WITHOUT ROWID

;
INSERT INTO "touches" VALUES('analyst:ann:patient',3,0);
INSERT INTO "touches" VALUES('analyst:ann:patient',2,1);
INSERT INTO "touches" VALUES('analyst:ann:patient',6,1);
INSERT INTO "touches" VALUES('dataset:patient',3,0);
INSERT INTO "touches" VALUES('dataset:patient',5,0);
INSERT INTO "touches" VALUES('dataset:patient',1,1);
INSERT INTO "touches" VALUES('dataset:row of visits',8,0);
INSERT INTO "touches" VALUES('dataset:row of visits',7,1);
CREATE INDEX budgets ON touches (account, sets_budget, entry);
CREATE TRIGGER entries_update BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER entries_delete BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER entries_insert BEFORE INSERT ON entries WHEN NEW.number IS NOT (SELECT count FROM head) OR EXISTS (SELECT 1 FROM entries WHERE token = NEW.token) OR EXISTS (SELECT 1 FROM entries WHERE answers = NEW.answers) BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER touches_update BEFORE UPDATE ON touches BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER touches_delete BEFORE DELETE ON touches BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER touches_insert BEFORE INSERT ON touches WHEN NEW.entry IS NOT (SELECT count FROM head) BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER head_update BEFORE UPDATE ON head WHEN NEW.count IS NOT OLD.count + 1 OR NEW.id IS NOT 1 BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER head_delete BEFORE DELETE ON head BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER head_insert BEFORE INSERT ON head WHEN EXISTS (SELECT 1 FROM head) BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
COMMIT;
