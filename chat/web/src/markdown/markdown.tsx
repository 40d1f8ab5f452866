import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { finishBlock } from "./finish";
import { MarkdownStream } from "./stream";

/** A text of a model, rendered as it comes in. */
export function Markdown(props: {
  text: string;
  isStreaming: boolean;
  /** Called for every block that will not change any more. */
  onSettled?: (block: HTMLElement) => void;
}) {
  const { text, isStreaming, onSettled } = props;
  const root = useRef<HTMLDivElement>(null);
  const stream = useRef<MarkdownStream | null>(null);
  useLayoutEffect(() => {
    if (!root.current) return;
    stream.current ??= new MarkdownStream(root.current, (block) => {
      finishBlock(block);
      onSettled?.(block);
    });
    stream.current.update(text, !isStreaming);
  }, [text, isStreaming]);
  useEffect(
    () => () => {
      stream.current = null;
    },
    [],
  );
  return <div ref={root} class="md" />;
}
