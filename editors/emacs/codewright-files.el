;;; codewright-files.el --- Files of the agent, and its changes  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Reads and writes files for the agent through buffers, so that it sees buffers
;; that are not saved, and remembers the texts before its changes.

;;; Code:

(require 'subr-x)
(require 'codewright-rpc)

(defconst codewright-files-max-size (* 32 1024 1024)
  "The largest file that is read or written, in bytes.")

(defconst codewright-files--max-changed 300
  "The most changed files that are remembered.")

(defconst codewright-files--max-compared (* 2 1024 1024)
  "The largest text that is compared, in characters.")

(defvar codewright-files--changed nil
  "The changed files, newest first.
Each entry is (FILE BEFORE STEPS).  BEFORE is the text before the
changes, `missing' if the file did not exist, or nil if it is not known.
STEPS is `exact' if BEFORE is known exactly, or the changes since then,
newest first.")

(defun codewright-files--disk-text (file)
  "Return the text of FILE on the disk, or nil if there is no file."
  (when (file-exists-p file)
    (unless (file-regular-p file)
      (error "`%s' is not a regular file" file))
    (when (> (file-attribute-size (file-attributes file)) codewright-files-max-size)
      (error "`%s' is too large" file))
    (with-temp-buffer
      (let ((coding-system-for-read 'utf-8-unix)
            (inhibit-file-name-handlers '(jka-compr-handler epa-file-handler))
            (inhibit-file-name-operation 'insert-file-contents))
        (insert-file-contents file))
      (buffer-string))))

(defun codewright-files-text (file)
  "Return the present text of FILE, also if it is not saved.
Return nil if there is no file."
  (let ((buffer (find-buffer-visiting file)))
    (if (and buffer (buffer-modified-p buffer))
        (with-current-buffer buffer
          (save-restriction
            (widen)
            (buffer-substring-no-properties (point-min) (point-max))))
      (codewright-files--disk-text file))))

(defun codewright-files-inside-p (root file)
  "Return whether FILE is in the directory ROOT, by name."
  (string-prefix-p (file-name-as-directory root) file))

(defun codewright-files--real (file)
  "Return FILE without links.  Its last parts may be missing."
  (cond
   ((file-exists-p file) (file-truename file))
   ((file-symlink-p file) (error "`%s' is a link to a missing file" file))
   (t (let ((parent (directory-file-name (file-name-directory file))))
        (if (string= parent file)
            file
          (concat (file-name-as-directory (codewright-files--real parent))
                  (file-name-nondirectory file)))))))

(defun codewright-files-checked (file root)
  "Return FILE if the agent may use it in a session in ROOT.
The permission rules of the agent have decided about the name as it is
written, so a name inside ROOT must not be a link to a file outside.
Names of remote files and of other handlers are refused."
  (unless (and (stringp file)
               (string-prefix-p "/" file)
               (not (find-file-name-handler file 'file-exists-p)))
    (error "the path is not absolute"))
  (let ((plain (expand-file-name file)))
    (when (and (codewright-files-inside-p root plain)
               (not (codewright-files-inside-p (file-truename root) (codewright-files--real plain))))
      (error "`%s' is a link out of the project" file))
    plain))

(defun codewright-files-read (params root)
  "Return the text that PARAMS of the agent request in a session in ROOT."
  (let* ((file (codewright-files-checked (codewright-text params "path") root))
         (text (or (codewright-files-text file) (error "`%s' does not exist" file)))
         (line (codewright-get params "line"))
         (limit (codewright-get params "limit")))
    (if (not (or line limit))
        text
      (with-temp-buffer
        (insert text)
        (goto-char (point-min))
        (forward-line (1- (max (if (integerp line) line 1) 1)))
        (let ((from (point)))
          (if (natnump limit) (forward-line limit) (goto-char (point-max)))
          (buffer-substring-no-properties from (point)))))))

(defun codewright-files-set (file text)
  "Write TEXT to FILE, through its buffer if there is one.
Marks and points of the buffer keep their places."
  (when (> (length text) codewright-files-max-size)
    (error "the text is too large"))
  (codewright-files-reload)
  (let ((buffer (find-buffer-visiting file)))
    (if buffer
        (with-current-buffer buffer
          (let ((inhibit-read-only t)
                (source (generate-new-buffer " *codewright-text*")))
            (unwind-protect
                (save-restriction
                  (widen)
                  (with-current-buffer source
                    (insert text))
                  (replace-buffer-contents source 1)
                  (set-visited-file-modtime)
                  (let ((require-final-newline nil)
                        (mode-require-final-newline nil))
                    (save-buffer 0)))
              (kill-buffer source))))
      (make-directory (file-name-directory file) t)
      (let ((coding-system-for-write 'utf-8-unix)
            (require-final-newline nil))
        (write-region text nil file nil 'silent)))))

(defun codewright-files-reload ()
  "Read files again that have changed on the disk and not in their buffers."
  (dolist (buffer (buffer-list))
    (when (and (buffer-file-name buffer)
               (not (buffer-modified-p buffer))
               (not (file-remote-p (buffer-file-name buffer)))
               (not (verify-visited-file-modtime buffer))
               (file-exists-p (buffer-file-name buffer)))
      (with-current-buffer buffer
        (revert-buffer t t t)))))

;; Changes.

(defun codewright-files--add (file before steps)
  "Remember FILE with the text BEFORE its changes, and the STEPS since then."
  (when (and (stringp before) (> (length before) codewright-files--max-compared))
    (setq before nil))
  (push (list file before steps) codewright-files--changed)
  (when (> (length codewright-files--changed) codewright-files--max-changed)
    (setq codewright-files--changed (butlast codewright-files--changed))))

(defun codewright-files-changed (file)
  "Return the entry of the changed FILE, or nil."
  (assoc file codewright-files--changed))

(defun codewright-files-forget (file)
  "Accept the changes of FILE."
  (setq codewright-files--changed
        (delq (codewright-files-changed file) codewright-files--changed)))

(defun codewright-files-written (file before)
  "Note that the agent writes FILE, whose text BEFORE is known.
BEFORE is nil if there was no file."
  (unless (codewright-files-changed file)
    (codewright-files--add file (or before 'missing) 'exact)))

(defun codewright-files--reversed (text old new)
  "Return TEXT with OLD in the place of NEW, or nil if NEW is not there."
  (let ((at (and text (not (string= new "")) (string-match (regexp-quote new) text))))
    (and at (concat (substring text 0 at) old (substring text (+ at (length new)))))))

(defun codewright-files--stepped (file old new)
  "Note that a call has replaced OLD with NEW in FILE."
  (let* ((known (codewright-files-changed file))
         (steps (nth 2 known)))
    (unless (eq steps 'exact)
      (let* ((text (ignore-errors (codewright-files-text file)))
             (all (cons (cons old new) steps))
             (before (and text (< (length text) codewright-files--max-compared) text)))
        ;; Several changes can be on the disk before the first result is read.
        (dolist (step all)
          (setq before (codewright-files--reversed before (car step) (cdr step))))
        (if (not known)
            (codewright-files--add file before all)
          (setf (nth 2 known) all)
          (when before
            (setf (nth 1 known) before)))))))

(defun codewright-files-called (update)
  "Note the changes in the UPDATE of a tool call.  Return whether there are some."
  (let ((metadata (codewright-get update "rawOutput" "metadata"))
        (found nil))
    (when (equal (codewright-text update "status") "completed")
      (dolist (entry (codewright-list update "content"))
        (let ((file (codewright-text entry "path")))
          (when (and file (equal (codewright-text entry "type") "diff"))
            (setq found t)
            (if (and (hash-table-p metadata) (null (gethash "exists" metadata t)))
                (codewright-files-written file nil)
              (codewright-files--stepped file
                                         (or (codewright-text entry "oldText") "")
                                         (or (codewright-text entry "newText") ""))))))
      ;; The files of patches, of which only the names are used.
      (dolist (entry (codewright-list metadata "files"))
        (let ((file (codewright-text entry "filePath")))
          (when file
            (setq found t)
            (unless (codewright-files-changed file)
              (codewright-files--add file nil 'exact))))))
    found))

;; Differences.

(defun codewright-files-diff (file)
  "Return the changes of FILE as a unified diff, or nil if there are none.
Signal an error if the text before is not known."
  (let* ((known (or (codewright-files-changed file) (error "Codewright has not changed %s" file)))
         (before (or (nth 1 known) (error "The text of %s before the change is not known" file))))
    (codewright-files-unified file
                              (if (eq before 'missing) "" before)
                              (or (codewright-files-text file) ""))))

(defun codewright-files-unified (file before after)
  "Return the difference between BEFORE and AFTER, texts of FILE.
Return nil if they are equal."
  (let ((old (make-temp-file "codewright-old-"))
        (new (make-temp-file "codewright-new-"))
        (coding-system-for-write 'utf-8-unix)
        (coding-system-for-read 'utf-8-unix))
    (unwind-protect
        (with-temp-buffer
          (write-region before nil old nil 'silent)
          (write-region after nil new nil 'silent)
          (let ((default-directory temporary-file-directory))
            (when (eq 1 (call-process "diff" nil t nil "-U1" "--label" file "--label" file old new))
              (buffer-string))))
      (delete-file old)
      (delete-file new))))

(provide 'codewright-files)
;;; codewright-files.el ends here
