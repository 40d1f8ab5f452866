-- The audit log is append-only: rows go only behind a signed statement (a tombstone), and each new entry waits for its seal.
-- That the statement's signature holds is the verifier's to say. A blank line ends a statement.

CREATE OR REPLACE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'restrict_violation';
END $$

CREATE OR REPLACE FUNCTION audit_guard_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF EXISTS (
            SELECT 1 FROM audit_auditseal s JOIN audit_audittombstone t
            ON t.chain_id = s.chain_id AND s.seq BETWEEN t.first_seq AND t.last_seq
            WHERE s.entry_id = OLD.id AND t.kind = 'entries'
        ) THEN RETURN OLD; END IF;
    ELSIF NEW.arguments_preview = '' AND NEW.result_preview = ''
        AND to_jsonb(NEW) - '{arguments_preview,result_preview}'::text[]
            = to_jsonb(OLD) - '{arguments_preview,result_preview}'::text[]
        AND EXISTS (
            SELECT 1 FROM audit_auditseal s JOIN audit_audittombstone t
            ON t.chain_id = s.chain_id AND s.seq BETWEEN t.first_seq AND t.last_seq
            WHERE s.entry_id = OLD.id AND t.kind = 'bodies'
        ) THEN RETURN NEW;
    END IF;
    RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'restrict_violation';
END $$

CREATE OR REPLACE FUNCTION audit_guard_seal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND EXISTS (
        SELECT 1 FROM audit_audittombstone t WHERE t.chain_id = OLD.chain_id
            AND OLD.seq BETWEEN t.first_seq AND t.last_seq AND t.kind = 'entries'
    ) THEN RETURN OLD; END IF;
    RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'restrict_violation';
END $$

CREATE OR REPLACE FUNCTION audit_guard_hold() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.released_at IS NULL AND NEW.released_at IS NOT NULL
        AND to_jsonb(NEW) - '{released_at,released_by}'::text[]
            = to_jsonb(OLD) - '{released_at,released_by}'::text[] THEN RETURN NEW;
    END IF;
    RAISE EXCEPTION 'legal holds are only ever released' USING ERRCODE = 'restrict_violation';
END $$

CREATE OR REPLACE FUNCTION audit_await_seal() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit_pendingseal (entry_id, xact) VALUES (NEW.id, pg_current_xact_id()::text);
    IF NEW.action = 'config.changed' THEN
        DELETE FROM audit_outsidewrite
        WHERE row_id = NEW.details ->> 'id' AND xact = pg_current_xact_id()::text;
    END IF;
    RETURN NULL;
END $$

CREATE TRIGGER audit_guard BEFORE UPDATE OR DELETE ON audit_auditentry
FOR EACH ROW EXECUTE FUNCTION audit_guard_entry()

CREATE TRIGGER audit_guard BEFORE UPDATE OR DELETE ON audit_auditseal
FOR EACH ROW EXECUTE FUNCTION audit_guard_seal()

CREATE TRIGGER audit_guard BEFORE UPDATE OR DELETE ON audit_auditcheckpoint
FOR EACH ROW EXECUTE FUNCTION audit_refuse()

CREATE TRIGGER audit_guard BEFORE UPDATE OR DELETE ON audit_audittombstone
FOR EACH ROW EXECUTE FUNCTION audit_refuse()

CREATE TRIGGER audit_guard BEFORE UPDATE OR DELETE ON audit_legalhold
FOR EACH ROW EXECUTE FUNCTION audit_guard_hold()

CREATE TRIGGER audit_await_seal AFTER INSERT ON audit_auditentry
FOR EACH ROW EXECUTE FUNCTION audit_await_seal()

CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON audit_auditentry
FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse()

CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON audit_auditseal
FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse()

CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON audit_auditcheckpoint
FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse()

CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON audit_audittombstone
FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse()

CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON audit_legalhold
FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse()
