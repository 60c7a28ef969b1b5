// The report of a problem: a file without credentials, which the user sends.
import { openDialog } from "../../app/dialogs";
import { call } from "../../api";
import { download } from "../../state/export";
import { t } from "../../text";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { code, plain, prose } from "../../ui/text";

/** Downloads the report, and says what to do with it. */
export async function reportBug(directory: string): Promise<void> {
  const report = await call("POST /experimental/bug", { query: { directory }, long: true });
  const save = () => download(plain(report.name), "text/markdown", report.text);
  save();
  openDialog((dialog) => (
    <Dialog
      title={t.bugReport}
      onClose={dialog.close}
      foot={
        <>
          <Button onClick={save}>{t.downloadAgain}</Button>
          <Button kind="primary" onClick={dialog.close}>
            {t.done}
          </Button>
        </>
      }
    >
      <p>{t.bugWritten(plain(report.name))}</p>
      <p>{prose(report.advice.replace(/\n/g, " "))}</p>
      <pre class="output" tabindex={0}>
        {code(report.text)}
      </pre>
    </Dialog>
  ));
}
