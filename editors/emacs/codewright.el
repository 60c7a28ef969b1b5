;;; codewright.el --- The coding agent Codewright  -*- lexical-binding: t; -*-

;; Version: 0.1.0
;; Package-Requires: ((emacs "27.1"))
;; Keywords: tools, convenience
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A chat with the agent over the Agent Client Protocol, its changes as diff
;; buffers, and the terminal client.  The package starts the installed program
;; `codewright'.  Begin with `M-x codewright'.

;;; Code:

(require 'button)
(require 'diff-mode)
(require 'seq)
(require 'url-util)
(require 'subr-x)
(require 'codewright-channel)
(require 'codewright-files)
(require 'codewright-rpc)

(declare-function flymake-diagnostics "flymake" (&optional beg end))
(declare-function flymake-diagnostic-text "flymake" (diag))
(declare-function term-mode "term" ())
(declare-function term-char-mode "term" ())
(declare-function make-term "term" (name program &optional startfile &rest switches))
(declare-function term-send-raw-string "term" (chars))

(defgroup codewright nil
  "The coding agent Codewright."
  :group 'tools)

(defcustom codewright-program "codewright"
  "The program, a name on the search path or an absolute name."
  :type 'string
  :risky t)

(defcustom codewright-show-thoughts t
  "Whether the thoughts of the model are shown."
  :type 'boolean)

(defface codewright-prompt '((t :inherit (bold font-lock-keyword-face)))
  "The prompts of the user.")

(defface codewright-thought '((t :inherit (italic shadow)))
  "The thoughts of the model.")

(defface codewright-tool '((t :inherit font-lock-function-name-face))
  "Tool calls.")

(defface codewright-output '((t :inherit shadow))
  "The outputs of tool calls.")

(defface codewright-note '((t :inherit warning))
  "Failures and other notes.")

(defface codewright-request '((t :inherit (bold warning)))
  "Permission requests and questions.")

(defconst codewright--max-items 2000
  "The most entries of a conversation that are shown.")

(defconst codewright--max-text (* 1024 1024)
  "The longest text of an entry, in characters.")

(defconst codewright--max-output-lines 12
  "The most lines of the output of a tool that are shown.")

(defconst codewright--max-sessions 16
  "The most open sessions.")

(defconst codewright--max-requests 64
  "The most requests that wait for the user.")

(defconst codewright--max-mentions 20
  "The most references of a prompt that are resolved.")

(defvar codewright--process nil
  "The process of the program, or nil.")

(defvar codewright--phase 'stopped
  "The state of the program: `stopped', `starting', `ready' or `failed'.")

(defvar codewright--queue nil
  "Functions that run when the program is ready.")

(defvar codewright--buffers nil
  "The chat buffers, by the id of the session.")

(defvar codewright--early nil
  "Updates of sessions whose response has not arrived.")

(defvar codewright--last nil
  "The chat buffer that was used last.")

(defvar-local codewright--session nil "The id of the session.")
(defvar-local codewright--title "New session" "The title of the session.")
(defvar-local codewright--root nil "The directory of the session.")
(defvar-local codewright--options nil "The options of the session.")
(defvar-local codewright--commands nil "The commands of the session.")
(defvar-local codewright--usage nil "The usage of the session.")
(defvar-local codewright--turns 0 "The number of turns that run or wait.")
(defvar-local codewright--items nil
  "The entries, newest first.
Each is a plist with the markers `:start' and `:end'.")
(defvar-local codewright--requests nil "The requests that wait for the user, oldest first.")
(defvar-local codewright--output-end nil "The marker at the end of the conversation.")
(defvar-local codewright--input-start nil "The marker at the beginning of the input.")

;; The buffer.

(defvar codewright-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'codewright-send)
    (define-key map (kbd "C-c C-c") #'codewright-send)
    (define-key map (kbd "C-j") #'newline)
    (define-key map (kbd "C-c C-k") #'codewright-cancel)
    (define-key map (kbd "C-c C-a") #'codewright-answer)
    (define-key map (kbd "C-c C-n") #'codewright-new)
    (define-key map (kbd "C-c C-o") #'codewright-sessions)
    (define-key map (kbd "C-c C-m") #'codewright-choose)
    (define-key map (kbd "C-c C-d") #'codewright-changes)
    (define-key map (kbd "TAB") #'completion-at-point)
    map)
  "The keys of chat buffers.")

(define-derived-mode codewright-mode text-mode "Codewright"
  "The chat with the agent.
The end of the buffer is the prompt.
\\{codewright-mode-map}"
  (setq-local bidi-paragraph-direction 'left-to-right)
  (setq-local mode-line-process '(:eval (concat " " (codewright-mode-line))))
  (add-hook 'completion-at-point-functions #'codewright--complete nil t)
  (add-hook 'kill-buffer-hook #'codewright--closed nil t)
  (visual-line-mode 1))

(defun codewright--make-buffer (id root)
  "Return a new chat buffer for the session ID in the directory ROOT."
  (when (>= (length codewright--buffers) codewright--max-sessions)
    (error "%d sessions are open already" codewright--max-sessions))
  (let ((buffer (generate-new-buffer "*codewright*")))
    (with-current-buffer buffer
      (codewright-mode)
      (setq codewright--session id
            codewright--root root
            default-directory (file-name-as-directory root))
      (insert (propertize "\n› " 'read-only t 'face 'codewright-prompt
                          'rear-nonsticky t 'front-sticky t))
      (setq codewright--output-end (copy-marker (point-min))
            codewright--input-start (copy-marker (point-max))))
    (push (cons id buffer) codewright--buffers)
    (setq codewright--last buffer)
    (dolist (params (reverse codewright--early))
      (codewright--updated params))
    (setq codewright--early nil)
    buffer))

(defun codewright--closed ()
  "Close the session of a chat buffer that is killed.  It stays stored."
  (setq codewright--buffers (assoc-delete-all codewright--session codewright--buffers))
  (dolist (request codewright--requests)
    (funcall (plist-get request :answer) nil))
  (when (codewright-rpc-live-p codewright--process)
    (codewright-rpc-request codewright--process "session/close"
                            `(:sessionId ,codewright--session) #'ignore codewright-rpc-deadline)))

(defun codewright--buffer (id)
  "Return the live chat buffer of the session ID, or nil."
  (let ((buffer (cdr (assoc id codewright--buffers))))
    (and (buffer-live-p buffer) buffer)))

(defun codewright--chat ()
  "Return the chat buffer of the user: the current one, or the last one."
  (cond
   ((derived-mode-p 'codewright-mode) (current-buffer))
   ((buffer-live-p codewright--last) codewright--last)
   (t (cdr (car codewright--buffers)))))

(defmacro codewright--with-output (&rest body)
  "Run BODY, which changes the conversation.
Points at the prompt keep their places."
  (declare (indent 0) (debug t))
  `(let ((inhibit-read-only t)
         (buffer-undo-list t))
     (save-excursion ,@body)))

(defun codewright--insert (text face)
  "Insert TEXT with FACE as a part of the conversation."
  (insert (propertize text 'face face 'read-only t 'front-sticky t 'rear-nonsticky t)))

(defun codewright--push (item)
  "Add ITEM at the end of the conversation."
  (codewright--with-output
    (goto-char codewright--output-end)
    (setq item (plist-put item :start (copy-marker (point))))
    (codewright--insert "\n" nil)
    (set-marker codewright--output-end (point))
    (setq item (plist-put item :end (copy-marker (1- (point)))))
    (push item codewright--items)
    (codewright--draw item))
  (when (> (length codewright--items) codewright--max-items)
    (let ((oldest (car (last codewright--items))))
      (setq codewright--items (butlast codewright--items))
      (codewright--with-output
        (delete-region (plist-get oldest :start) (1+ (plist-get oldest :end))))))
  item)

(defun codewright--draw (item)
  "Draw ITEM again."
  (codewright--with-output
    (let ((end (plist-get item :end)))
      (goto-char (plist-get item :start))
      (set-marker-insertion-type end t)
      (delete-region (point) end)
      (codewright--insert-item item)
      (set-marker-insertion-type end nil))))

(defun codewright--insert-item (item)
  "Insert the text of ITEM at point."
  (pcase (plist-get item :kind)
    ('user (codewright--insert (concat "› " (plist-get item :text) "\n") 'codewright-prompt))
    ('agent (codewright--insert (concat (plist-get item :text) "\n") nil))
    ('thought (when codewright-show-thoughts
                (codewright--insert (concat (plist-get item :text) "\n") 'codewright-thought)))
    ('note (codewright--insert (concat "! " (plist-get item :text) "\n") 'codewright-note))
    ('plan (codewright--insert (concat (plist-get item :text) "\n") 'codewright-output))
    ('tool (codewright--insert-tool item))
    ('request (codewright--insert-request item))))

(defun codewright--insert-tool (item)
  "Insert the tool call ITEM at point."
  (let ((mark (pcase (plist-get item :status) ("completed" "✓") ("failed" "✗") (_ "…")))
        (title (car (split-string (or (plist-get item :title) "tool") "\n"))))
    (codewright--insert (format "%s %s\n" mark title) 'codewright-tool)
    (if (plist-get item :differences)
        (dolist (difference (plist-get item :differences))
          (codewright--insert-difference difference))
      (let* ((lines (split-string (string-trim-right (or (plist-get item :output) "")) "\n"))
             (shown (last lines codewright--max-output-lines)))
        (unless (equal shown '(""))
          (codewright--insert (mapconcat (lambda (line) (concat "    " line "\n")) shown "")
                              'codewright-output))))))

(defun codewright--insert-difference (difference)
  "Insert the texts of DIFFERENCE, the old one and the new one, at point."
  (pcase-dolist (`(,key ,mark ,face) '(("oldText" "- " diff-removed) ("newText" "+ " diff-added)))
    (let ((lines (split-string (string-trim-right (or (codewright-text difference key) "") "\n") "\n")))
      (unless (equal lines '(""))
        (dolist (line (butlast lines (max 0 (- (length lines) 30))))
          (codewright--insert (concat mark line "\n") face))))))

(defun codewright--insert-request (item)
  "Insert the request ITEM at point, with a button for each option."
  (codewright--insert (concat "? " (plist-get item :text) "\n") 'codewright-request)
  (when (plist-get item :details)
    (codewright--insert (concat (plist-get item :details) "\n") 'codewright-output))
  (dolist (difference (plist-get item :differences))
    (codewright--insert-difference difference))
  (if (plist-get item :answered)
      (codewright--insert (format "  %s\n" (plist-get item :answered)) 'codewright-output)
    (let ((from (point)))
      (dolist (option (plist-get item :options))
        (let ((name (or (codewright-text option "name") "?"))
              (request (plist-get item :request)))
          (insert "  ")
          (insert-text-button (format "[%s]" name)
                              'action (lambda (_) (codewright--answer request option))
                              'follow-link t)))
      (insert "\n")
      (add-text-properties from (point) '(read-only t front-sticky t rear-nonsticky t)))))

;; Updates.

(defun codewright--clip (text limit)
  "Return at most LIMIT characters of TEXT, a string or nil."
  (cond ((null text) "")
        ((> (length text) limit) (substring text 0 limit))
        (t text)))

(defun codewright--grow (kind update)
  "Append the chunk of UPDATE to the last entry if that has KIND."
  (let* ((content (codewright-get update "content"))
         (piece (if (equal (codewright-text content "type") "text")
                    (codewright--clip (codewright-text content "text") codewright--max-text)
                  (format "[%s]" (or (codewright-text content "type") "content"))))
         (id (codewright-text update "messageId"))
         (last (car codewright--items)))
    (cond
     ((and last id (eq (plist-get last :kind) kind) (equal (plist-get last :id) id))
      (when (< (length (plist-get last :text)) codewright--max-text)
        (plist-put last :text (concat (plist-get last :text) (and (eq kind 'user) "\n") piece))
        (if (memq kind '(agent thought))
            (codewright--append last piece)
          (codewright--draw last))))
     ((not (string= piece ""))
      (codewright--push (list :kind kind :id id :text piece))))))

(defun codewright--append (item piece)
  "Insert PIECE at the end of the growing text of ITEM."
  (unless (and (eq (plist-get item :kind) 'thought) (not codewright-show-thoughts))
    (codewright--with-output
      (let ((end (plist-get item :end)))
        ;; Before the line break that ends the text.
        (goto-char (1- end))
        (codewright--insert piece (and (eq (plist-get item :kind) 'thought) 'codewright-thought))))))

(defun codewright--tool-call (update)
  "Note the UPDATE of a tool call."
  (let* ((id (codewright-text update "toolCallId"))
         (known (catch 'found
                  (dolist (item codewright--items)
                    (when (and (eq (plist-get item :kind) 'tool) (equal (plist-get item :id) id))
                      (throw 'found item)))))
         (item (or known
                   (list :kind 'tool :id id :title nil :status nil :output nil :differences nil))))
    (pcase-dolist (`(,key ,name) '((:title "title") (:status "status")))
      (let ((value (codewright-text update name)))
        (when value
          (plist-put item key (codewright--clip value 2000)))))
    (let ((content (codewright-list update "content")))
      (when content
        (plist-put item :differences
                   (seq-filter (lambda (it) (equal (codewright-text it "type") "diff")) content))
        (plist-put item :output
                   (codewright--clip
                    (mapconcat (lambda (it) (or (codewright-text it "content" "text") "")) content "\n")
                    65536))))
    (if known (codewright--draw item) (codewright--push item))))

(defun codewright--plan (update)
  "Show the plan of UPDATE."
  (let ((text (mapconcat
               (lambda (entry)
                 (format "- [%s] %s"
                         (pcase (codewright-text entry "status")
                           ("completed" "x") ("in_progress" "-") (_ " "))
                         (codewright--clip (codewright-text entry "content") 1000)))
               (codewright-list update "entries") "\n")))
    (codewright--push (list :kind 'plan :text text))))

(defun codewright--for-user-p (update)
  "Return whether the chunk of UPDATE is for the user."
  (let ((audience (codewright-list update "content" "annotations" "audience")))
    (or (null audience) (member "user" audience))))

(defun codewright--updated (params)
  "Note an update of a session, which PARAMS contain."
  (let ((buffer (codewright--buffer (codewright-text params "sessionId")))
        (update (codewright-get params "update")))
    (if (not buffer)
        (when (< (length codewright--early) 200)
          (push params codewright--early))
      (with-current-buffer buffer
        (pcase (codewright-text update "sessionUpdate")
          ("user_message_chunk" (when (codewright--for-user-p update)
                                  (codewright--grow 'user update)))
          ("agent_message_chunk" (codewright--grow 'agent update))
          ("agent_thought_chunk" (codewright--grow 'thought update))
          ("tool_call" (codewright--tool-call update))
          ("tool_call_update" (codewright--tool-call update)
           (when (codewright-files-called update)
             (codewright-files-reload)))
          ("plan" (codewright--plan update))
          ("available_commands_update"
           (setq codewright--commands (codewright-list update "availableCommands")))
          ("config_option_update" (setq codewright--options (codewright-list update "configOptions")))
          ("session_info_update"
           (setq codewright--title (or (codewright-text update "title") codewright--title)))
          ("usage_update" (setq codewright--usage update)))
        (force-mode-line-update t)))))

;; Requests of the agent.

(defun codewright--question (params)
  "Return the text of the request PARAMS for the user."
  (let* ((call (codewright-get params "toolCall"))
         (title (or (codewright-text call "title") "this"))
         (verb (pcase (codewright-text call "kind")
                 ("execute" "Run") ("edit" "Change") ("delete" "Delete") ("read" "Read")
                 ("fetch" "Fetch") ("search" "Search") (_ "Allow"))))
    (if (codewright--permission-p params)
        (format "%s: %s?" verb title)
      title)))

(defun codewright--permission-p (params)
  "Return whether PARAMS ask for a permission, and are not a question."
  (seq-every-p (lambda (option)
                 (member (codewright-text option "optionId") '("once" "always" "reject")))
               (codewright-list params "options")))

(defun codewright--request (params answer)
  "Show the request PARAMS.  ANSWER gets the chosen option, or nil."
  (let ((buffer (codewright--buffer (codewright-text params "sessionId")))
        (options (codewright-list params "options")))
    (if (or (not buffer) (not options))
        (funcall answer nil)
      (with-current-buffer buffer
        (if (>= (length codewright--requests) codewright--max-requests)
            (funcall answer nil)
          (let* ((content (codewright-list params "toolCall" "content"))
                 (request (list :options options :answer answer :item nil))
                 (details (and (not (codewright--permission-p params))
                               (codewright-text (car content) "content" "text"))))
            (plist-put request :item
                       (codewright--push
                        (list :kind 'request :request request :options options
                              :text (codewright--question params) :details details :answered nil
                              :differences (seq-filter (lambda (it) (codewright-text it "newText"))
                                                       content))))
            (setq codewright--requests (append codewright--requests (list request)))
            (force-mode-line-update t)
            (message "Codewright: %s" (truncate-string-to-width (codewright--question params) 200))))))))

(defun codewright--answer (request option)
  "Answer REQUEST with OPTION.  The first answer counts."
  (let ((buffer (marker-buffer (plist-get (plist-get request :item) :start))))
    (when (buffer-live-p buffer)
      (with-current-buffer buffer
        (when (memq request codewright--requests)
          (setq codewright--requests (delq request codewright--requests))
          (let ((item (plist-get request :item)))
            (plist-put item :answered (if option (codewright-text option "name") "no answer"))
            (codewright--draw item))
          (force-mode-line-update t)
          (funcall (plist-get request :answer) option))))))

(defun codewright--settle ()
  "End the requests of the current chat buffer."
  (dolist (request codewright--requests)
    (codewright--answer request nil)))

(defun codewright--serve (method params answer)
  "Answer the request METHOD with PARAMS through ANSWER."
  (let ((root (let ((buffer (codewright--buffer (codewright-text params "sessionId"))))
                (and buffer (buffer-local-value 'codewright--root buffer)))))
    (pcase method
      ("session/request_permission"
       (codewright--request
        params
        (lambda (option)
          (funcall answer nil
                   (if option
                       `(:outcome (:outcome "selected" :optionId ,(codewright-text option "optionId")))
                     '(:outcome (:outcome "cancelled")))))))
      ((and "fs/read_text_file" (guard root))
       (funcall answer nil `(:content ,(codewright-files-read params root))))
      ((and "fs/write_text_file" (guard root))
       (let* ((file (codewright-files-checked (codewright-text params "path") root))
              (before (codewright-files-text file)))
         (codewright-files-set file (or (codewright-text params "content")
                                        (error "`content' is missing")))
         (codewright-files-written file before)
         (funcall answer nil nil)))
      (_ (error "`%s' is not supported" method)))))

;; The program.

(defun codewright-find-program ()
  "Return the absolute name of the program, or signal an error."
  (or (executable-find codewright-program)
      (let ((cargo (expand-file-name "~/.cargo/bin/codewright")))
        (and (equal codewright-program "codewright") (file-executable-p cargo) cargo))
      (user-error "The program `codewright' was not found; see `codewright-program'")))

(defun codewright--ended (reason was-stopped)
  "Note that the program has ended for REASON.
WAS-STOPPED is non-nil if that was requested."
  (setq codewright--process nil
        codewright--queue nil
        codewright--phase (if was-stopped 'stopped 'failed))
  (dolist (entry codewright--buffers)
    (when (buffer-live-p (cdr entry))
      (with-current-buffer (cdr entry)
        (setq codewright--turns 0)
        (codewright--settle)
        (codewright--push (list :kind 'note :text reason)))))
  (setq codewright--buffers nil)
  (force-mode-line-update t)
  (unless was-stopped
    (message "Codewright: %s" reason)))

(defun codewright--connect (ready)
  "Start the program, unless it runs, and call READY."
  (cond
   ((and (codewright-rpc-live-p codewright--process) (eq codewright--phase 'ready))
    (funcall ready))
   ((codewright-rpc-live-p codewright--process) (push ready codewright--queue))
   (t
    (setq codewright--queue (list ready)
          codewright--phase 'starting
          codewright--process (codewright-rpc-start
                               (codewright-find-program) default-directory
                               (list :request #'codewright--serve
                                     :notify (lambda (method params)
                                               (when (equal method "session/update")
                                                 (codewright--updated params)))
                                     :ended #'codewright--ended)))
    (codewright-rpc-request
     codewright--process "initialize"
     `(:protocolVersion 1
       :clientCapabilities (:fs (:readTextFile t :writeTextFile t) :terminal :false)
       :clientInfo (:name "codewright.el" :version "0.1.0"))
     (lambda (failure result)
       (if (or failure (not (eql (codewright-get result "protocolVersion") 1)))
           (message "Codewright: %s" (codewright--message failure))
         (setq codewright--phase 'ready)
         (let ((queue (nreverse codewright--queue)))
           (setq codewright--queue nil)
           (mapc #'funcall queue))))
     codewright-rpc-deadline))))

(defun codewright--message (failure)
  "Return FAILURE as a sentence."
  (let ((data (codewright-text failure "data")))
    (concat (or (codewright-text failure "message") "the request failed")
            (and data (not (string= data "")) (concat ": " data)))))

(defun codewright--call (method params done)
  "Send METHOD with PARAMS, and call DONE with the result if it succeeds."
  (codewright-rpc-request codewright--process method params
                          (lambda (failure result)
                            (if failure
                                (message "Codewright: %s" (codewright--message failure))
                              (funcall done result)))
                          codewright-rpc-deadline))

(defun codewright--directory ()
  "Return the directory of new sessions: the project, or the current directory."
  (let ((root (or (locate-dominating-file default-directory ".git") default-directory)))
    (directory-file-name (file-truename root))))

;; Commands.

;;;###autoload
(defun codewright (&optional prompt)
  "Open the chat.  With a PROMPT, send it."
  (interactive)
  (codewright--with-chat
   (lambda (buffer)
     (pop-to-buffer buffer)
     (goto-char (point-max))
     (when prompt
       (codewright-say prompt)))))

(defun codewright--with-chat (run)
  "Call RUN with the chat buffer, which is created if there is none."
  (let ((buffer (codewright--chat)))
    (if (and (buffer-live-p buffer) (rassq buffer codewright--buffers))
        (funcall run buffer)
      (codewright-new run))))

;;;###autoload
(defun codewright-new (&optional done)
  "Start a new session and show it.  DONE gets its buffer."
  (interactive)
  (let ((root (codewright--directory)))
    (codewright--connect
     (lambda ()
       (codewright--call
        "session/new" `(:cwd ,root :mcpServers [])
        (lambda (result)
          (let ((buffer (codewright--make-buffer (codewright-text result "sessionId") root)))
            (with-current-buffer buffer
              (setq codewright--options (codewright-list result "configOptions")))
            (pop-to-buffer buffer)
            (goto-char (point-max))
            (when (functionp done)
              (funcall done buffer)))))))))

;;;###autoload
(defun codewright-sessions ()
  "Open a stored session of the project."
  (interactive)
  (let ((root (codewright--directory)))
    (codewright--connect
     (lambda ()
       (codewright--call
        "session/list" `(:cwd ,root)
        (lambda (result)
          ;; The prompt does not begin inside of the filter of the process.
          (run-at-time 0 nil #'codewright--choose-session (codewright-list result "sessions"))))))))

(defun codewright--choose-session (sessions)
  "Let the user choose one of SESSIONS, and open it."
  (let* ((named (mapcar (lambda (it)
                          (cons (format "%s  (%s)" (or (codewright-text it "title") "Untitled")
                                        (or (codewright-text it "updatedAt") ""))
                                it))
                        sessions))
         (chosen (cdr (assoc (completing-read "Open a session: " named nil t) named))))
    (when chosen
      (codewright-load (codewright-text chosen "sessionId")
                       (codewright-text chosen "cwd")
                       (codewright-text chosen "title")))))

(defun codewright-load (id root title)
  "Open the stored session ID in the directory ROOT, whose title is TITLE."
  (let ((known (codewright--buffer id)))
    (if known
        (pop-to-buffer known)
      ;; Its content arrives before the response.
      (let ((buffer (codewright--make-buffer id root)))
        (with-current-buffer buffer
          (setq codewright--title (or title codewright--title)))
        (pop-to-buffer buffer)
        (codewright--call "session/load" `(:sessionId ,id :cwd ,root :mcpServers [])
                          (lambda (result)
                            (when (buffer-live-p buffer)
                              (with-current-buffer buffer
                                (setq codewright--options
                                      (codewright-list result "configOptions"))))))))))

(defun codewright-send ()
  "Send the prompt at the end of the chat buffer.
On a button of the conversation, press it."
  (interactive)
  (if (< (point) codewright--input-start)
      (if (button-at (point)) (push-button) (goto-char (point-max)))
    (let ((text (string-trim (buffer-substring-no-properties codewright--input-start (point-max)))))
      (unless (string= text "")
        (delete-region codewright--input-start (point-max))
        (codewright-say text)))))

(defun codewright-say (text)
  "Send the prompt TEXT in the current chat."
  (let ((buffer (or (codewright--chat) (user-error "There is no session; `M-x codewright' opens one"))))
    (with-current-buffer buffer
      (setq codewright--last buffer)
      (let ((blocks (codewright--blocks text codewright--root)))
        (codewright--push (list :kind 'user :id nil :text text))
        (setq codewright--turns (1+ codewright--turns))
        (force-mode-line-update t)
        (codewright-rpc-request
         codewright--process "session/prompt"
         `(:sessionId ,codewright--session :prompt ,(vconcat blocks))
         (lambda (failure result)
           (when (buffer-live-p buffer)
             (with-current-buffer buffer
               (setq codewright--turns (max 0 (1- codewright--turns)))
               (codewright--end-turn failure result)))))))))

(defun codewright--end-turn (failure result)
  "Show why a turn ended: FAILURE, or the reason in RESULT."
  (let ((reason (codewright-text result "stopReason")))
    (cond
     (failure
      (codewright--push
       (list :kind 'note
             :text (if (eql (codewright-get failure "code") -32000)
                       "sign in to a provider: `codewright providers login'"
                     (codewright--message failure)))))
     ((not (equal reason "end_turn"))
      (codewright--push (list :kind 'note :text (format "the turn ended: %s" reason))))))
  (when (= codewright--turns 0)
    (codewright--settle))
  (codewright-files-reload)
  (force-mode-line-update t))

(defun codewright-cancel ()
  "Cancel the turn of the chat."
  (interactive)
  (let ((buffer (codewright--chat)))
    (when buffer
      (with-current-buffer buffer
        (codewright--settle)
        (codewright-rpc-notify codewright--process "session/cancel"
                               `(:sessionId ,codewright--session))))))

(defun codewright-answer (name)
  "Answer the oldest request of the chat with the option NAME."
  (interactive
   (with-current-buffer (or (codewright--chat) (user-error "There is no session"))
     (let ((request (or (car codewright--requests) (user-error "Nothing waits for an answer"))))
       (list (completing-read
              (concat (plist-get (plist-get request :item) :text) " ")
              (mapcar (lambda (it) (codewright-text it "name")) (plist-get request :options)) nil t)))))
  (with-current-buffer (codewright--chat)
    (let ((request (car codewright--requests)))
      (codewright--answer request
                          (seq-find (lambda (it) (equal (codewright-text it "name") name))
                                    (plist-get request :options))))))

(defun codewright-choose (id value)
  "Set the option ID of the session to VALUE.
Interactively, choose both: the model, its effort, or the mode."
  (interactive
   (with-current-buffer (or (codewright--chat) (user-error "There is no session"))
     (let* ((ids (mapcar (lambda (it) (codewright-text it "id")) codewright--options))
            (id (completing-read "Option: " ids nil t)))
       (list id (completing-read
                 (format "%s: " id)
                 (mapcar (lambda (it) (codewright-text it "value"))
                         (codewright-list (codewright-option id) "options"))
                 nil t)))))
  (let ((buffer (codewright--chat)))
    (codewright--call "session/set_config_option"
                      `(:sessionId ,(buffer-local-value 'codewright--session buffer)
                        :configId ,id :value ,value)
                      (lambda (result)
                        (with-current-buffer buffer
                          (setq codewright--options (codewright-list result "configOptions")))
                        (message "Codewright: %s is %s" id value)))))

(defun codewright-option (id)
  "Return the option ID of the chat."
  (seq-find (lambda (it) (equal (codewright-text it "id") id))
            (buffer-local-value 'codewright--options (codewright--chat))))

(defun codewright-stop ()
  "End the program.  Sessions are stored."
  (interactive)
  (when codewright--process
    (codewright-rpc-stop codewright--process)))

(defun codewright-mode-line ()
  "Return the state of the chat for a mode line."
  (let* ((buffer (codewright--chat))
         (cost (and buffer (codewright-get (buffer-local-value 'codewright--usage buffer)
                                           "cost" "amount")))
         (state (cond
                 ((not (and buffer (eq codewright--phase 'ready))) (symbol-name codewright--phase))
                 ((buffer-local-value 'codewright--requests buffer) "waits for you")
                 ((> (buffer-local-value 'codewright--turns buffer) 0) "working")
                 (t "ready"))))
    ;; A percent sign begins a construct of the mode line.
    (replace-regexp-in-string
     "%" "%%"
     (concat "[" state
             (and (numberp cost) (format (if (< 0 cost 0.1) " $%.4f" " $%.2f") cost))
             (and buffer (concat " " (buffer-local-value 'codewright--title buffer)))
             "]")
     t t)))

;; Lines, problems and references.

(defun codewright--shown (file root)
  "Return the name of FILE for a person: relative to ROOT if it is inside."
  (if (codewright-files-inside-p root file) (file-relative-name file root) file))

(defun codewright--fenced (code language)
  "Return CODE in a fence that the code cannot close, with its LANGUAGE."
  (let ((longest 2) (from 0))
    (while (string-match "`+" code from)
      (setq longest (max longest (- (match-end 0) (match-beginning 0)))
            from (match-end 0)))
    (let ((fence (make-string (1+ longest) ?`)))
      (concat fence language "\n" (string-trim-right code "\n") "\n" fence))))

(defun codewright--region-text (from to root)
  "Return the text from FROM to TO with its place in ROOT."
  (let* ((first (line-number-at-pos from t))
         (last (line-number-at-pos (if (and (> to from) (eq (char-before to) ?\n)) (1- to) to) t))
         (name (if buffer-file-name
                   (codewright--shown (file-truename buffer-file-name) root)
                 (buffer-name)))
         (language (replace-regexp-in-string "-\\(ts-\\)?mode\\'" "" (symbol-name major-mode))))
    (format "%s:%s\n%s" name
            (if (= first last) first (format "%d-%d" first last))
            (codewright--fenced (buffer-substring-no-properties from to) language))))

;;;###autoload
(defun codewright-send-region (from to)
  "Put the region from FROM to TO into the prompt of the chat."
  (interactive "r")
  (let ((source (current-buffer)))
    (codewright--with-chat
     (lambda (buffer)
       (let ((text (with-current-buffer source
                     (codewright--region-text from to (buffer-local-value 'codewright--root buffer)))))
         (pop-to-buffer buffer)
         (goto-char (point-max))
         (insert text "\n"))))))

;;;###autoload
(defun codewright-explain-region (from to)
  "Explain the region from FROM to TO."
  (interactive "r")
  (codewright--about "Explain this code:" (current-buffer) from to))

;;;###autoload
(defun codewright-fix-problem ()
  "Fix the problems that Flymake reports for the current line."
  (interactive)
  (let* ((found (and (fboundp 'flymake-diagnostics)
                     (flymake-diagnostics (line-beginning-position) (line-end-position))))
         (texts (mapcar #'flymake-diagnostic-text found)))
    (unless texts
      (user-error "This line has no problems"))
    (codewright--about
     (concat "Fix this problem:\n\n" (mapconcat #'identity texts "\n"))
     (current-buffer)
     (save-excursion (forward-line -5) (point))
     (save-excursion (forward-line 6) (point)))))

(defun codewright--about (words source from to)
  "Send WORDS and the text of the buffer SOURCE from FROM to TO."
  (codewright--with-chat
   (lambda (buffer)
     (let ((text (with-current-buffer source
                   (codewright--region-text from to (buffer-local-value 'codewright--root buffer)))))
       (with-current-buffer buffer
         (codewright-say (concat words "\n\n" text))
         (display-buffer buffer))))))

(defun codewright--blocks (text root)
  "Return the blocks of the prompt TEXT, with the files in ROOT that it names."
  (let ((blocks (list `(:type "text" :text ,text)))
        (seen nil)
        (from 0))
    (while (and (string-match "\\(?:\\`\\|[[:space:](]\\)@\\([^[:space:]@]+\\)" text from)
                (< (length seen) codewright--max-mentions))
      (setq from (match-end 0))
      (let ((name (string-trim-right (match-string 1 text) "[].,;:!?)]+")))
        (unless (member name seen)
          (push name seen)
          (let ((block (codewright--mention name root)))
            (when block
              (push block blocks))))))
    (nreverse blocks)))

(defun codewright--mention (name root)
  "Return the block of the reference NAME in ROOT, or nil.
A name outside of ROOT may be anything, such as an account."
  (if (equal name "buffers")
      `(:type "text"
        :text ,(concat "Files that are open in the editor:\n"
                       (mapconcat (lambda (buffer)
                                    (concat "- " (codewright--shown (buffer-file-name buffer) root)))
                                  (seq-filter #'buffer-file-name (buffer-list)) "\n")))
    (let ((file (expand-file-name (replace-regexp-in-string "#L[0-9].*\\'" "" name) root)))
      (when (and (codewright-files-inside-p root file)
                 (not (find-file-name-handler file 'file-exists-p))
                 (file-regular-p file))
        (let ((buffer (find-buffer-visiting file))
              (uri (concat "file://" (url-hexify-string file (cons ?/ url-unreserved-chars)))))
          (if (and buffer (buffer-modified-p buffer))
              `(:type "resource"
                :resource (:uri ,uri :mimeType "text/plain" :text ,(codewright-files-text file)))
            `(:type "resource_link" :name ,(codewright--shown file root) :uri ,uri)))))))

(defun codewright--complete ()
  "Complete commands after a slash and files after an at sign."
  (when (>= (point) codewright--input-start)
    (let ((end (point)))
      (save-excursion
        (skip-chars-backward "^ \t\n@" codewright--input-start)
        (cond
         ((and (eq (char-before) ?@) (> (point) codewright--input-start))
          (list (point) end (cons "buffers" (codewright--files)) :exclusive 'no))
         ((and (= (point) codewright--input-start) (eq (char-after) ?/))
          (list (1+ (point)) end
                (mapcar (lambda (it) (codewright-text it "name")) codewright--commands)
                :exclusive 'no)))))))

(defun codewright--files ()
  "Return names of files of the project, at most 5000."
  (let ((default-directory (file-name-as-directory codewright--root)))
    (with-temp-buffer
      (ignore-errors
        (call-process "git" nil '(t nil) nil "ls-files" "--cached" "--others" "--exclude-standard"))
      (let ((names (split-string (buffer-string) "\n" t)))
        (butlast names (max 0 (- (length names) 5000)))))))

;; Changes.

;;;###autoload
(defun codewright-changes ()
  "Show the changes of the agent as a diff.
\\<codewright-diff-mode-map>\\[codewright-reject-hunk] undoes the hunk at point."
  (interactive)
  (let ((buffer (get-buffer-create "*codewright-changes*"))
        (unknown nil))
    (with-current-buffer buffer
      (let ((inhibit-read-only t))
        (erase-buffer)
        (dolist (entry (reverse codewright-files--changed))
          (let ((file (car entry)))
            (if (null (nth 1 entry))
                (push file unknown)
              (let ((diff (codewright-files-diff file)))
                (if diff (insert diff) (codewright-files-forget file))))))
        (dolist (file unknown)
          (insert (format "Changed; the text before is not known: %s\n" file))))
      (codewright-diff-mode)
      (goto-char (point-min)))
    (if (zerop (buffer-size buffer))
        (message "There are no changes")
      (pop-to-buffer buffer))
    buffer))

(defvar codewright-diff-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-r") #'codewright-reject-hunk)
    map)
  "The keys of the diff buffer of changes.")

(define-derived-mode codewright-diff-mode diff-mode "Codewright Diff"
  "The changes of the agent as a diff."
  (setq buffer-read-only nil))

(defun codewright-reject-hunk ()
  "Undo the hunk at point in its file."
  (interactive)
  (let ((file (file-truename (diff-find-file-name nil t))))
    (save-window-excursion
      (diff-apply-hunk t))
    (let ((buffer (find-buffer-visiting file)))
      (when buffer
        (with-current-buffer buffer
          (save-buffer 0))))
    (codewright-changes)))

;;;###autoload
(defun codewright-accept-file (file)
  "Accept all changes of FILE, by default of the current buffer."
  (interactive (list (and buffer-file-name (file-truename buffer-file-name))))
  (codewright-files-forget file))

;;;###autoload
(defun codewright-reject-file (file)
  "Undo all changes of FILE, by default of the current buffer."
  (interactive (list (and buffer-file-name (file-truename buffer-file-name))))
  (pcase (nth 1 (or (codewright-files-changed file) (user-error "Codewright has not changed this file")))
    ('nil (user-error "The text before the change is not known"))
    ('missing (delete-file file t))
    (before (codewright-files-set file before)))
  (codewright-files-forget file))

;; The terminal client.

(defun codewright-term ()
  "Open the terminal client."
  (interactive)
  (require 'term)
  (let* ((default-directory (file-name-as-directory (codewright--directory)))
         (channel (codewright-channel-open))
         (process-environment (if channel
                                  (cons (concat "CODEWRIGHT_EDITOR=" channel) process-environment)
                                process-environment))
         (buffer (make-term "codewright-term" (codewright-find-program))))
    (with-current-buffer buffer
      (term-mode)
      (term-char-mode))
    (pop-to-buffer buffer)))

(defun codewright-term-send-reference ()
  "Type a reference to the file or the region into the terminal client."
  (interactive)
  (let ((buffer (get-buffer "*codewright-term*"))
        (text (codewright-reference (codewright--directory))))
    (unless (and buffer (get-buffer-process buffer))
      (user-error "The terminal client does not run; `M-x codewright-term' opens it"))
    (with-current-buffer buffer
      ;; Control characters could end the paste or press keys.
      (term-send-raw-string
       (concat "\e[200~" (replace-regexp-in-string "[[:cntrl:]]" " " text) " \e[201~")))))

(defun codewright-reference (root)
  "Return a reference to the current file and region, relative to ROOT."
  (let ((name (concat "@" (codewright--shown (file-truename (or buffer-file-name
                                                                (user-error "This buffer has no file")))
                                             root))))
    (if (not (use-region-p))
        name
      (let ((first (line-number-at-pos (region-beginning) t))
            (last (line-number-at-pos (max (region-beginning) (1- (region-end))) t)))
        (if (= first last)
            (format "%s#L%d" name first)
          (format "%s#L%d-%d" name first last))))))

(provide 'codewright)
;;; codewright.el ends here
