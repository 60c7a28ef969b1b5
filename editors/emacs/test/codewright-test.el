;;; codewright-test.el --- Tests of the package  -*- lexical-binding: t; -*-

;;; Commentary:

;; Tests that need the program run on the stage of `editors/test/stage.sh'.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'seq)
(require 'codewright)

(defvar codewright-test-stage (getenv "CODEWRIGHT_STAGE"))

(defconst codewright-test-original
  "def add(a, b):\n    return a + b\n\n\ndef minus(a, b):\n    return a - b\n")

(defvar codewright-test-root
  (file-truename (if codewright-test-stage
                     (expand-file-name "emacs" codewright-test-stage)
                   (make-temp-file "codewright-emacs-" t))))

(make-directory codewright-test-root t)

(defun codewright-test-file (name &optional text)
  "Return the file NAME of the project, written with TEXT."
  (let ((file (expand-file-name name codewright-test-root))
        (coding-system-for-write 'utf-8-unix))
    (when text
      (make-directory (file-name-directory file) t)
      (write-region text nil file nil 'silent))
    file))

(defun codewright-test-read (file)
  "Return the text of FILE."
  (with-temp-buffer
    (insert-file-contents file)
    (buffer-string)))

(defun codewright-test-json (text)
  "Parse TEXT as the package does."
  (json-parse-string text :array-type 'list :null-object nil :false-object nil))

(defmacro codewright-test-until (what &rest body)
  "Wait until BODY is true, or fail with WHAT."
  (declare (indent 1))
  `(let ((end (+ (float-time) 60)))
     (while (not (progn ,@body))
       (when (> (float-time) end)
         (ert-fail (list "waited too long for" ,what (codewright-test-chat))))
       (accept-process-output nil 0.02))))

(defun codewright-test-chat ()
  "Return the conversation."
  (let ((buffer (codewright--chat)))
    (and (buffer-live-p buffer)
         (with-current-buffer buffer
           (buffer-substring-no-properties (point-min) codewright--output-end)))))

(defun codewright-test-shows (text)
  "Wait until the conversation contains TEXT."
  (codewright-test-until text
    (string-match-p (regexp-quote text) (or (codewright-test-chat) ""))))

(defun codewright-test-idle ()
  "Wait until no turn runs."
  (codewright-test-until "the end of the turn"
    (with-current-buffer (codewright--chat) (= codewright--turns 0))))

(defun codewright-test-fresh ()
  "Start a new session in the project."
  (unless codewright-test-stage
    (ert-skip "the program is missing; run editors/test/stage.sh"))
  (let ((buffer (find-buffer-visiting (codewright-test-file "src/util.py"))))
    (when buffer
      (kill-buffer buffer)))
  (codewright-test-file "src/util.py" codewright-test-original)
  (setq codewright-program (getenv "CODEWRIGHT_BIN"))
  (let ((old codewright--last)
        (default-directory (file-name-as-directory codewright-test-root)))
    (make-directory (expand-file-name ".git" codewright-test-root) t)
    (codewright-new)
    (codewright-test-until "a session"
      (not (eq codewright--last old)))
    (set-buffer codewright--last)))

(ert-deftest codewright-test-buffers-are-read-and-written ()
  (let* ((file (codewright-test-file "buffer.py" codewright-test-original))
         (buffer (find-file-noselect file)))
    (with-current-buffer buffer
      (goto-char (point-min))
      (insert "unsaved\n")
      (goto-char (point-max)))
    (let ((params (make-hash-table :test #'equal)))
      (puthash "path" file params)
      (should (string-prefix-p "unsaved\n" (codewright-files-read params codewright-test-root)))
      (puthash "line" 2 params)
      (puthash "limit" 1 params)
      (should (equal (codewright-files-read params codewright-test-root) "def add(a, b):\n")))
    (codewright-files-set file (concat "new\nlines\n" codewright-test-original))
    (should (equal (codewright-test-read file) (concat "new\nlines\n" codewright-test-original)))
    (with-current-buffer buffer
      (should (eobp))
      (should-not (buffer-modified-p)))
    (codewright-files-set file "no end of line")
    (should (equal (codewright-test-read file) "no end of line"))
    (kill-buffer buffer)
    (let ((fresh (codewright-test-file "deep/er/new.txt")))
      (codewright-files-set fresh "x")
      (should (equal (codewright-test-read fresh) "x")))))

(ert-deftest codewright-test-links-and-remote-names-are-refused ()
  (let ((outside (make-temp-file "codewright-outside-" nil nil "secret"))
        (root codewright-test-root))
    (dolist (link `(("link.txt" . ,outside)
                    ("dangling.txt" . ,(concat outside "-missing"))
                    ("linked" . ,(file-name-directory outside))))
      (make-symbolic-link (cdr link) (expand-file-name (car link) root) t))
    (dolist (name '("link.txt" "dangling.txt" "linked/new.txt"))
      (should-error (codewright-files-checked (expand-file-name name root) root)))
    (dolist (name '("relative" nil 7 "/ssh:host:/etc/passwd" "/sudo::/etc/shadow"))
      (should-error (codewright-files-checked name root)))
    (should-error (codewright-files-text root))
    (should (equal (codewright-test-read outside) "secret"))
    (dolist (name '("link.txt" "dangling.txt" "linked"))
      (delete-file (expand-file-name name root)))))

(ert-deftest codewright-test-the-text-before-is-computed ()
  (let ((codewright-files--changed nil)
        (file (codewright-test-file "steps.txt" "A\nb\nC\n")))
    (dolist (step '(("a" . "A") ("c" . "C")))
      (should (codewright-files-called
               (codewright-test-json
                (format (concat "{\"status\":\"completed\",\"content\":[{\"type\":\"diff\",\"path\":\"%s\","
                                "\"oldText\":\"%s\",\"newText\":\"%s\"}]}")
                        file (car step) (cdr step))))))
    (should (equal (nth 1 (codewright-files-changed file)) "a\nb\nc\n"))
    (should (string-match-p "^-a\n\\+A\n b" (codewright-files-diff file)))
    (codewright-reject-file file)
    (should (equal (codewright-test-read file) "a\nb\nc\n"))
    (should-not (codewright-files-changed file))
    (dotimes (at 400)
      (codewright-files-written (format "/f%d" at) ""))
    (should (= (length codewright-files--changed) 300))))

(ert-deftest codewright-test-references-stay-in-the-project ()
  (let* ((root codewright-test-root)
         (file (codewright-test-file "src/util.py" codewright-test-original))
         (blocks (codewright--blocks "see @src/util.py, @/etc/passwd @../x me@example.org" root)))
    (should (equal (mapcar (lambda (it) (plist-get it :type)) blocks) '("text" "resource_link")))
    (with-current-buffer (find-file-noselect file)
      (insert "dirty")
      (should (equal (plist-get (nth 1 (codewright--blocks "@src/util.py" root)) :type) "resource"))
      (set-buffer-modified-p nil)
      (kill-buffer))
    (should (equal (codewright--fenced "```\n" "x") "````x\n```\n````"))))

(ert-deftest codewright-test-broken-updates-change-nothing ()
  (let* ((codewright--buffers nil)
         (codewright--last nil)
         (codewright--early nil)
         (buffer (codewright--make-buffer "s" codewright-test-root)))
    (dolist (update '("null" "3" "{}" "{\"sessionUpdate\":\"plan\",\"entries\":\"x\"}"
                      "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":7}"
                      "{\"sessionUpdate\":\"tool_call\"}"))
      (codewright--updated
       (codewright-test-json (format "{\"sessionId\":\"s\",\"update\":%s}" update))))
    (with-current-buffer buffer
      (let ((codewright--max-items 10))
        (dotimes (at 30)
          (codewright--push (list :kind 'user :text (number-to-string at)))))
      (should (<= (length codewright--items) 12))
      (should (string-match-p "› 29\n" (codewright-test-chat)))
      ;; The conversation is read-only, and the prompt is not.
      (goto-char (point-min))
      (should-error (insert "x"))
      (goto-char (point-max))
      (insert "prompt")
      (should (equal (buffer-substring-no-properties codewright--input-start (point-max)) "prompt")))
    (kill-buffer buffer)))

(ert-deftest codewright-test-a-missing-program-is-an-error ()
  (let ((codewright-program "codewright-missing"))
    (should-error (codewright-find-program) :type 'user-error)))

(ert-deftest codewright-test-a-program-that-fails-is-reported ()
  (let ((codewright-program "false")
        (codewright--process nil)
        (default-directory (file-name-as-directory codewright-test-root)))
    (codewright-new)
    (codewright-test-until "the end" (null codewright--process))
    (should (eq codewright--phase 'failed))))

(ert-deftest codewright-test-control-characters-are-not-typed ()
  (let (sent)
    (cl-letf (((symbol-function 'term-send-raw-string) (lambda (text) (setq sent text)))
              ((symbol-function 'codewright-reference) (lambda (_) "@a\e[201~\rrm"))
              ((symbol-function 'get-buffer-process) (lambda (_) t)))
      (with-current-buffer (get-buffer-create "*codewright-term*")
        (codewright-term-send-reference)
        (let ((kill-buffer-query-functions nil))
          (ignore-errors (kill-buffer)))))
    (should (equal sent "\e[200~@a [201~ rm \e[201~"))))

(defun codewright-test-connect ()
  "Connect to the channel as a client."
  (let ((port (string-to-number (nth 1 (split-string (codewright-channel-open) ":")))))
    (make-network-process :name "client" :host "127.0.0.1" :service port :coding 'utf-8-unix
                          :noquery t :sentinel #'ignore
                          :filter (lambda (process text)
                                    (process-put process 'text
                                                 (concat (process-get process 'text) text))))))

(defun codewright-test-request (client method &optional params)
  "Send METHOD with PARAMS from CLIENT, and return the answer."
  (process-put client 'text nil)
  (process-send-string client (concat (json-serialize `(:id 7 :method ,method :params ,params)) "\n"))
  (codewright-test-until method (string-suffix-p "\n" (or (process-get client 'text) "")))
  (codewright-test-json (process-get client 'text)))

(ert-deftest codewright-test-the-channel-opens-files-and-reports ()
  (let* ((file (codewright-test-file "channel.py" codewright-test-original))
         (client (codewright-test-connect))
         (token (nth 2 (split-string (codewright-channel-open) ":"))))
    (should (string-match-p "\\`[0-9a-f]\\{48\\}\\'" token))
    (should (equal (codewright-text (codewright-test-request client "hello" `(:token ,token))
                                    "result" "editor")
                   "emacs"))
    (let ((answer (codewright-test-request client "open" `(:path ,file :line 2 :character 5))))
      (should-not (codewright-get answer "error")))
    (with-current-buffer (find-buffer-visiting file)
      (should (equal (list (line-number-at-pos) (current-column)) '(2 4)))
      (goto-char (point-min))
      (push-mark (+ (point) 3) t t)
      (setq mark-active t))
    (pop-to-buffer-same-window (find-buffer-visiting file))
    (let ((answer (codewright-get (codewright-test-request client "selection") "result")))
      (should (equal (codewright-text answer "text") "def"))
      (should (equal (codewright-get answer "end" "character") 3)))
    (should (codewright-get (codewright-test-request client "problems") "result"))
    (codewright-test-request client "diff" `(:path ,file :before "a\nb\n" :after "a\nc\n"))
    (with-current-buffer "*codewright-diff*"
      (should (string-match-p "^-b\n\\+c" (buffer-string))))
    (dolist (bad (list "/dev/null" codewright-test-root "/missing" "relative" "/sudo::/etc/shadow" 7))
      (should (codewright-get (codewright-test-request client "open" `(:path ,bad)) "error")))
    (should (codewright-get (codewright-test-request client "run") "error"))
    (delete-process client)
    (kill-buffer (find-buffer-visiting file))
    (dolist (line '("{\"method\":\"selection\"}" "{\"method\":\"hello\",\"params\":{\"token\":\"0\"}}"
                    "GET / HTTP/1.1"))
      (let ((other (codewright-test-connect)))
        (process-send-string other (concat line "\n"))
        (codewright-test-until "the end" (not (process-live-p other)))))
    (codewright-test-until "no connections" (= codewright-channel--connections 0))))

(ert-deftest codewright-test-a-prompt-is-answered ()
  (codewright-test-fresh)
  (goto-char (point-max))
  (insert "say hello")
  (codewright-send)
  (codewright-test-shows "› say hello\n\nhmm\n\nHello from the model\n")
  (codewright-test-idle)
  (codewright-test-until "the title" (string-match-p "Scripted title" (codewright-mode-line)))
  (should (string-match-p "^\\[ready \\$0\\.0" (codewright-mode-line)))
  (should (equal (buffer-substring-no-properties codewright--input-start (point-max)) ""))
  (insert "/comp")
  (should (member "compact" (nth 2 (codewright--complete))))
  (delete-region codewright--input-start (point-max)))

(ert-deftest codewright-test-changes-are-a-diff-and-undone-by-hunk ()
  (codewright-test-fresh)
  (setq codewright-files--changed nil)
  (let ((file (codewright-test-file "src/util.py")))
    (codewright-say "EDIT it")
    (codewright-test-shows "Edited it.")
    (codewright-test-idle)
    (should (string-match-p "^\\+     return a \\+ b \\+ 0" (codewright-test-chat)))
    (with-current-buffer (codewright-changes)
      (should (derived-mode-p 'diff-mode))
      (goto-char (point-min))
      (should (search-forward "+    return a + b + 0" nil t))
      (codewright-reject-hunk))
    (should (string-prefix-p "def add(a, b):\n    return a + b\n" (codewright-test-read file)))
    (should-not (equal (codewright-test-read file) codewright-test-original))
    (codewright-reject-file file)
    (should (equal (codewright-test-read file) codewright-test-original))
    (let ((buffer (find-buffer-visiting file)))
      (when buffer (kill-buffer buffer)))))

(ert-deftest codewright-test-requests-are-answered ()
  (codewright-test-fresh)
  (codewright-say "RUN it")
  (codewright-test-shows "? Run: echo from-bash?\n  [Allow once]  [Always allow]  [Reject]")
  (should (string-match-p "waits for you" (codewright-mode-line)))
  (goto-char (point-min))
  (search-forward "[Allow once")
  (codewright-send)
  (codewright-test-shows "Ran it.")
  (should (string-match-p "✓ echo from-bash\n    from-bash" (codewright-test-chat)))
  (codewright-test-idle)
  (codewright-test-fresh)
  (codewright-say "DENY it")
  (codewright-test-shows "[Reject]")
  (codewright-answer "Reject")
  (codewright-test-shows "✗ printf denied")
  (codewright-test-idle)
  (should-not (file-exists-p (codewright-test-file "denied.txt")))
  (codewright-test-fresh)
  (codewright-say "QUIZ me")
  (codewright-test-shows "? Which color?")
  (codewright-answer "Blue")
  (codewright-test-shows "Quizzed.")
  (codewright-test-idle))

(ert-deftest codewright-test-plans-cancelling-and-failures ()
  (codewright-test-fresh)
  (codewright-say "PLAN it")
  (codewright-test-shows "- [x] first thing\n- [-] second thing")
  (codewright-test-idle)
  (codewright-test-fresh)
  (codewright-say "WAIT for it")
  (codewright-test-shows "one")
  (should (string-match-p "working" (codewright-mode-line)))
  (codewright-cancel)
  (codewright-test-shows "! the turn ended: cancelled")
  (codewright-test-fresh)
  (codewright-say "BREAK it")
  (codewright-test-shows "the model is out of order")
  (codewright-test-idle))

(ert-deftest codewright-test-options-and-stored-sessions ()
  (codewright-test-fresh)
  (codewright-choose "model" "mock/other-model")
  (codewright-test-until "the model"
    (equal (codewright-text (codewright-option "model") "currentValue") "mock/other-model"))
  (codewright-say "a prompt to keep")
  (codewright-test-shows "Hello from the model")
  (codewright-test-idle)
  (let ((id codewright--session))
    (kill-buffer)
    (cl-letf (((symbol-function 'completing-read)
               (lambda (_prompt named &rest _)
                 (car (seq-find (lambda (it) (equal (codewright-text (cdr it) "sessionId") id)) named)))))
      (let ((default-directory (file-name-as-directory codewright-test-root)))
        (codewright-sessions)
        (codewright-test-until "the session" (codewright--buffer id)))))
  (codewright-test-shows "› a prompt to keep")
  (codewright-test-shows "Hello from the model"))

(ert-deftest codewright-test-regions-become-prompts ()
  (codewright-test-fresh)
  (let ((buffer (find-file-noselect (codewright-test-file "src/util.py"))))
    (with-current-buffer buffer
      (codewright-explain-region (point-min) (progn (goto-char (point-min)) (forward-line 2) (point))))
    (codewright-test-shows "src/util.py:1-2\n```python\ndef add(a, b):")
    (codewright-test-idle)
    (with-current-buffer buffer
      (codewright-send-region (point-min) (progn (goto-char (point-min)) (forward-line 1) (point))))
    (with-current-buffer (codewright--chat)
      (should (string-prefix-p "src/util.py:1\n```python\ndef add"
                               (buffer-substring-no-properties codewright--input-start (point-max)))))
    (kill-buffer buffer)))

(ert-deftest codewright-test-zz-the-program-ends ()
  (skip-unless codewright--process)
  (codewright-stop)
  (codewright-test-until "the end" (null codewright--process))
  (should (eq codewright--phase 'stopped)))

(provide 'codewright-test)
;;; codewright-test.el ends here
