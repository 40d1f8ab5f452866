-- Words of passages. Run this again in each migration that changes the table of passages: SQLite makes such a table
-- anew, without its triggers and with other row numbers. A blank line ends a statement.

DROP TRIGGER IF EXISTS chat_knowledgepassage_words_new

DROP TRIGGER IF EXISTS chat_knowledgepassage_words_gone

DROP TABLE IF EXISTS chat_knowledgepassage_words

CREATE VIRTUAL TABLE chat_knowledgepassage_words USING fts5(text, tokenize = 'unicode61 remove_diacritics 2')

INSERT INTO chat_knowledgepassage_words (rowid, text) SELECT rowid, text FROM chat_knowledgepassage

CREATE TRIGGER chat_knowledgepassage_words_new AFTER INSERT ON chat_knowledgepassage
BEGIN
    INSERT INTO chat_knowledgepassage_words (rowid, text) VALUES (new.rowid, new.text);
END

CREATE TRIGGER chat_knowledgepassage_words_gone AFTER DELETE ON chat_knowledgepassage
BEGIN
    DELETE FROM chat_knowledgepassage_words WHERE rowid = old.rowid;
END
