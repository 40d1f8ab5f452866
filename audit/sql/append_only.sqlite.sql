-- The audit log is append-only: rows go only behind a signed statement (a tombstone), and each new entry waits for its seal.
-- That the statement's signature holds is the verifier's to say. A blank line ends a statement.
-- {sealed_columns} stands for every column of an entry that never changes.

CREATE TRIGGER audit_no_update BEFORE UPDATE OF {sealed_columns} ON audit_auditentry
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END

CREATE TRIGGER audit_no_erasure BEFORE UPDATE OF arguments_preview, result_preview ON audit_auditentry
WHEN NEW.arguments_preview <> '' OR NEW.result_preview <> '' OR NOT EXISTS (
    SELECT 1 FROM audit_auditseal s JOIN audit_audittombstone t
    ON t.chain_id = s.chain_id AND s.seq BETWEEN t.first_seq AND t.last_seq
    WHERE s.entry_id = OLD.id AND t.kind = 'bodies'
)
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END

CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit_auditentry
WHEN NOT EXISTS (
    SELECT 1 FROM audit_auditseal s JOIN audit_audittombstone t
    ON t.chain_id = s.chain_id AND s.seq BETWEEN t.first_seq AND t.last_seq
    WHERE s.entry_id = OLD.id AND t.kind = 'entries'
)
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END

CREATE TRIGGER audit_seal_no_update BEFORE UPDATE ON audit_auditseal
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END

CREATE TRIGGER audit_seal_no_delete BEFORE DELETE ON audit_auditseal
WHEN NOT EXISTS (
    SELECT 1 FROM audit_audittombstone t WHERE t.chain_id = OLD.chain_id
    AND OLD.seq BETWEEN t.first_seq AND t.last_seq AND t.kind = 'entries'
)
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END

CREATE TRIGGER audit_auditcheckpoint_no_update BEFORE UPDATE ON audit_auditcheckpoint
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END

CREATE TRIGGER audit_auditcheckpoint_no_delete BEFORE DELETE ON audit_auditcheckpoint
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END

CREATE TRIGGER audit_audittombstone_no_update BEFORE UPDATE ON audit_audittombstone
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END

CREATE TRIGGER audit_audittombstone_no_delete BEFORE DELETE ON audit_audittombstone
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END

CREATE TRIGGER audit_hold_no_delete BEFORE DELETE ON audit_legalhold
BEGIN SELECT RAISE(ABORT, 'legal holds are only ever released'); END

CREATE TRIGGER audit_hold_released BEFORE UPDATE ON audit_legalhold
WHEN OLD.released_at IS NOT NULL OR NEW.released_at IS NULL OR NEW.id <> OLD.id
    OR NEW.workspace_id <> OLD.workspace_id OR NEW.reason <> OLD.reason
    OR NEW.placed_by <> OLD.placed_by OR NEW.placed_at <> OLD.placed_at
BEGIN SELECT RAISE(ABORT, 'legal holds are only ever released'); END

CREATE TRIGGER audit_await_seal AFTER INSERT ON audit_auditentry
BEGIN INSERT INTO audit_pendingseal (entry_id) VALUES (NEW.id); END

CREATE TRIGGER audit_announced AFTER INSERT ON audit_auditentry WHEN NEW.action = 'config.changed'
BEGIN DELETE FROM audit_outsidewrite WHERE row_id = replace(json_extract(NEW.details, '$.id'), '-', ''); END
