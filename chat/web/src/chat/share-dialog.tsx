import { useEffect, useId, useRef, useState } from "preact/hooks";
import { api, boot } from "../app/boot";
import { messageAt, messageOf, toast } from "../app/toasts";
import { moment, typed } from "../formats";
import { describedBy, FieldNotes } from "../forms/frame";
import { ApiProblem } from "../net/api";
import { list } from "../store/list";
import { openState } from "../store/open-conversation";
import { choiceOf, formOf, isSameForm, type ShareForm, type Sharing } from "../store/sharing";
import common from "../texts/common";
import t from "../texts/sharing";
import { CopyButton } from "../ui/copy";
import { Dialog, DialogButtons } from "../ui/dialog";
import { Icon } from "../ui/icon";
import type { Conversation, Person, Share } from "../wire";

/** Between the last letter and the search for people. */
const PAUSE_MS = 200;

type Faults = Readonly<Record<string, string>>;

/** Stopped meanwhile, by an administrator or on another device. */
function unlessGone(error: unknown): null {
  if (error instanceof ApiProblem && error.status === 404) return null;
  throw error;
}

function faultsOf(error: unknown): Faults {
  const field = error instanceof ApiProblem ? (error.field.split(".")[0] ?? "") : "";
  return { [field]: field ? messageAt(field, error) : messageOf(error) };
}

interface PartProps {
  form: ShareForm;
  faults: Faults;
  onChange: (change: Partial<ShareForm>) => void;
}

function Audience({ form, faults, onChange }: PartProps) {
  const id = useId();
  const ways: [ShareForm["audience"], string, string?][] = [
    ["people", t.people],
    ["workspace", t.workspace(boot.workspace.name)],
  ];
  if (boot.allows_public_links || form.audience === "link") ways.push(["link", t.link, t.linkHelp]);
  const notes = { id, problem: faults.audience };
  return (
    <fieldset class="field" aria-describedby={describedBy(notes)["aria-describedby"]}>
      <legend>{t.audience}</legend>
      {ways.map(([audience, label, help]) => (
        <label key={audience} class="check items-start">
          <input
            type="radio"
            name="share-audience"
            checked={form.audience === audience}
            onChange={() => onChange({ audience })}
          />
          <span>
            {label}
            {help && <span class="help block">{help}</span>}
          </span>
        </label>
      ))}
      <FieldNotes {...notes} />
    </fieldset>
  );
}

/** The chosen people first, and below them whoever is found by what is typed. */
function People({ form, faults, onChange }: PartProps) {
  const id = useId();
  const [words, setWords] = useState("");
  const [found, setFound] = useState<Person[] | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let isOld = false;
    const timer = setTimeout(async () => {
      try {
        const people = await api.findPeople(words);
        if (isOld) return;
        setFound(people);
        setProblem("");
      } catch (error) {
        if (!isOld) setProblem(messageOf(error));
      }
    }, PAUSE_MS);
    return () => {
      isOld = true;
      clearTimeout(timer);
    };
  }, [words]);
  const isChosen = (person: Person) => form.people.some((one) => one.id === person.id);
  const others = (found ?? []).filter((person) => !isChosen(person));
  const toggle = (person: Person, isIn: boolean) => {
    const rest = form.people.filter((one) => one.id !== person.id);
    onChange({ people: isIn ? [...rest, person] : rest });
  };
  const notes = { id, problem: faults.people || problem };
  return (
    <div class="field">
      <input
        type="search"
        aria-label={t.search}
        placeholder={t.search}
        value={words}
        {...describedBy(notes)}
        onInput={(event) => setWords(event.currentTarget.value)}
      />
      <fieldset class="share-people">
        <legend class="sr-only">{t.foundPeople}</legend>
        {[...form.people, ...others].map((person) => (
          <label key={person.id} class="check compare-row">
            <input
              type="checkbox"
              checked={isChosen(person)}
              onChange={(event) => toggle(person, event.currentTarget.checked)}
            />
            <span class="min-w-0">
              <span class="block truncate">{person.name}</span>
              <span class="block truncate text-xs text-(--quiet)">{person.email}</span>
            </span>
          </label>
        ))}
        {found !== null && form.people.length + others.length === 0 && (
          <p class="text-sm text-(--quiet)">{t.noMatches}</p>
        )}
      </fieldset>
      <span class="help" role="status">
        {form.people.length > 0 && t.chosen(form.people.length)}
      </span>
      <FieldNotes {...notes} />
    </div>
  );
}

function Included({ form, faults, onChange }: PartProps) {
  const id = useId();
  const ends = { id: `${id}-ends`, help: t.endsHelp, problem: faults.expires_at };
  const boxes = [
    ["withFiles", t.withFiles, t.withFilesHelp],
    ["withCalls", t.withCalls, t.withCallsHelp],
  ] as const;
  return (
    <>
      <fieldset class="field">
        <legend>{t.include}</legend>
        {boxes.map(([name, label, help]) => (
          <label key={name} class="check items-start">
            <input
              type="checkbox"
              checked={form[name]}
              onChange={(event) => onChange({ [name]: event.currentTarget.checked })}
            />
            <span>
              {label}
              <span class="help block">{help}</span>
            </span>
          </label>
        ))}
        <p class="help">{t.never}</p>
      </fieldset>
      <div class="field">
        <label for={`${id}-ends`}>
          {t.ends} <span class="optional">{common.optional}</span>
        </label>
        <input
          id={`${id}-ends`}
          type="date"
          {...describedBy(ends)}
          min={typed(Date.now()).slice(0, 10)}
          value={form.ends}
          onInput={(event) => onChange({ ends: event.currentTarget.value })}
        />
        <FieldNotes {...ends} />
      </div>
    </>
  );
}

/** The link of a chat that is shared, and what readers see by it. */
function State(props: { share: Share; isNew: boolean; isBusy: boolean; onUpdate: () => void }) {
  const { share, isNew, isBusy, onUpdate } = props;
  const id = useId();
  const link = useRef<HTMLInputElement>(null);
  useEffect(() => {
    // On a phone, whoever has just shared it is at the other end of the dialog.
    if (isNew) link.current?.focus();
  }, []);
  return (
    <div class="grid gap-3">
      {share.link ? (
        <div class="field">
          <label for={id}>{t.linkField}</label>
          <div class="flex flex-wrap items-center gap-2">
            <input
              ref={link}
              id={id}
              class="min-w-0 grow"
              readOnly
              value={share.link}
              onFocus={(e) => e.currentTarget.select()}
            />
            <CopyButton text={() => share.link} label={t.copyLink} />
            <a class="btn btn-sm btn-outline-quiet" href={share.link} target="_blank" rel="noopener">
              <Icon name="external" />
              {t.open}
            </a>
          </div>
        </div>
      ) : (
        <div class="notice" data-tone="warn">
          <Icon name="alert" />
          <span>{t.linkUnreadable}</span>
        </div>
      )}
      {!share.is_open && (
        <div class="notice" data-tone="warn">
          <Icon name="alert" />
          <span>{t.ended}</span>
        </div>
      )}
      <div class="notice items-center" data-tone={share.is_current ? "info" : "warn"}>
        <Icon name="info" />
        <span class="grow">
          {t.updatedOn(moment(share.shared_at))}
          {!share.is_current && ` ${t.changed}`}
        </span>
        <button type="button" class="btn btn-sm btn-outline-quiet" disabled={isBusy} onClick={onUpdate}>
          <Icon name="refresh" />
          {t.update}
        </button>
      </div>
    </div>
  );
}

function Stopping(props: { isBusy: boolean; problem: string; onKeep: () => void; onStop: () => void }) {
  return (
    <div class="grid gap-3" role="alert">
      <p class="text-sm">{t.stopText}</p>
      {props.problem && <p class="field-error">{props.problem}</p>}
      <DialogButtons
        onCancel={props.onKeep}
        cancel={t.keep}
        label={t.stop}
        onClick={props.onStop}
        isDestructive
        isBusy={props.isBusy}
      />
    </div>
  );
}

/** Whether it is shared, as far as the page has heard by now. */
function isSharedNow(row: Conversation): boolean {
  const open = openState.value?.conversation;
  const now = open?.id === row.id ? open : list.value?.find((one) => one.id === row.id);
  return (now ?? row).is_shared;
}

function Form({ about, first, onClose }: { about: Sharing; first: Share | null; onClose: () => void }) {
  const { row, until } = about;
  const [share, setShare] = useState(first);
  const [form, setForm] = useState(() => formOf(first));
  const [faults, setFaults] = useState<Faults>({});
  const [isBusy, setBusy] = useState(false);
  const [isStopping, setStopping] = useState(false);
  const isShared = isSharedNow(row);
  const wasShared = useRef(isShared);
  useEffect(() => {
    // Else "Update" would share it again, against the person's own word.
    if (wasShared.current && !isShared && share && !isBusy) {
      setShare(null);
      setStopping(false);
      toast(t.stoppedElsewhere, "bad");
    }
    wasShared.current = isShared;
  }, [isShared]);
  const change = (part: Partial<ShareForm>) => {
    setForm({ ...form, ...part });
    setFaults({});
  };
  const attempt = async (act: () => Promise<void>) => {
    setBusy(true);
    try {
      await act();
      setFaults({});
    } catch (error) {
      setFaults(faultsOf(error));
    }
    setBusy(false);
  };
  const send = (end: string | null, words: string) =>
    attempt(async () => {
      const saved = await api.saveShare(row.id, choiceOf(form, end));
      setShare(saved);
      setForm(formOf(saved));
      toast(words, "ok");
    });
  const stop = () =>
    attempt(async () => {
      await api.stopSharing(row.id).catch(unlessGone);
      toast(t.stopped, "ok");
      onClose();
    });
  const parts = { form, faults, onChange: change };
  const isPart = until !== undefined && until !== share?.end_message_id;
  const isSame = share !== null && !isPart && isSameForm(form, formOf(share));
  if (isStopping) {
    return (
      <div class="compare-form">
        <Stopping
          isBusy={isBusy}
          problem={Object.values(faults).join(" ")}
          onKeep={() => {
            setStopping(false);
            setFaults({});
          }}
          onStop={stop}
        />
      </div>
    );
  }
  return (
    <form
      class="compare-form"
      onSubmit={(event) => {
        event.preventDefault();
        const end = until ?? share?.end_message_id ?? null;
        void send(end, share ? t.saved : form.audience === "people" ? t.isSharedWithPeople : t.isShared);
      }}
    >
      {share ? (
        <State
          share={share}
          isNew={first === null}
          isBusy={isBusy}
          onUpdate={() => send(until ?? null, t.updated)}
        />
      ) : (
        <p class="text-sm text-(--quiet)">{until ? t.aboutPart : t.about}</p>
      )}
      {share && isPart && <p class="text-sm text-(--quiet)">{t.aboutPart}</p>}
      <Audience {...parts} />
      {form.audience === "people" && <People {...parts} />}
      <Included {...parts} />
      {(faults[""] || faults.until_message_id) && (
        <p class="field-error" role="alert">
          {faults[""] || faults.until_message_id}
        </p>
      )}
      <div class="dialog-foot flex flex-wrap items-center justify-end gap-2">
        <a class="link-quiet grow text-xs" href={boot.urls.shared_chats}>
          {t.mine}
        </a>
        {share ? (
          <button type="button" class="btn btn-quiet" onClick={() => setStopping(true)}>
            {t.stop}
          </button>
        ) : (
          <button type="button" class="btn btn-outline-quiet" onClick={onClose}>
            {common.cancel}
          </button>
        )}
        <button type="submit" class="btn btn-primary" disabled={isBusy || isSame}>
          {share ? t.save : t.submit}
        </button>
      </div>
    </form>
  );
}

export function ShareDialog({ about, onClose }: { about: Sharing; onClose: () => void }) {
  const { row } = about;
  const [share, setShare] = useState<Share | null | undefined>(row.is_shared ? undefined : null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    if (!row.is_shared) return;
    api
      .share(row.id)
      .catch(unlessGone)
      .then(setShare, (error: unknown) => setProblem(messageOf(error)));
  }, [row.id]);
  return (
    <Dialog title={t.title} onClose={onClose}>
      {problem ? (
        <p class="compare-form field-error" role="alert">
          {problem}
        </p>
      ) : share === undefined ? (
        <div class="compare-form" aria-busy="true">
          <span class="sr-only">{t.loading}</span>
          <div class="skeleton-line w-11/12" />
          <div class="skeleton-line w-4/5" />
        </div>
      ) : (
        <Form about={about} first={share} onClose={onClose} />
      )}
    </Dialog>
  );
}
