;;; codewright-channel.el --- The editor channel  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The terminal client opens files here and reads the region through this
;; channel.  `editors/README.md' describes it.

;;; Code:

(require 'diff-mode)
(require 'seq)
(require 'subr-x)
(require 'codewright-files)
(require 'codewright-rpc)

(declare-function flymake-diagnostics "flymake" (&optional beg end))
(declare-function flymake-diagnostic-beg "flymake" (diag))
(declare-function flymake-diagnostic-end "flymake" (diag))
(declare-function flymake-diagnostic-text "flymake" (diag))
(declare-function flymake-diagnostic-type "flymake" (diag))

(defconst codewright-channel--max-line (* 8 1024 1024)
  "The longest line of a client, in characters.")

(defconst codewright-channel--max-connections 8
  "The most connections at a time.")

(defconst codewright-channel--hello-deadline 5
  "The time until the first line, in seconds.")

(defconst codewright-channel--max-selection (* 256 1024)
  "The longest text of a selection, in characters.")

(defconst codewright-channel--max-problems 200
  "The most problems in an answer.")

(defvar codewright-channel--server nil
  "The process that listens, or nil.")

(defvar codewright-channel--connections 0
  "The number of connections.")

(defun codewright-channel--token ()
  "Return 48 hexadecimal digits that nobody can guess, or nil.
The random numbers of Emacs are not made for this."
  (with-temp-buffer
    (set-buffer-multibyte nil)
    (let ((coding-system-for-read 'binary)
          (default-directory temporary-file-directory))
      (ignore-errors
        (call-process "head" "/dev/urandom" t nil "-c" "24")))
    (and (= (buffer-size) 24)
         (mapconcat (lambda (byte) (format "%02x" byte)) (buffer-string) ""))))

(defun codewright-channel-open ()
  "Open the channel once, and return the value of `CODEWRIGHT_EDITOR'.
Return nil if the system has no source of random numbers."
  (unless (process-live-p codewright-channel--server)
    (let ((token (codewright-channel--token)))
      (when token
        (setq codewright-channel--server
              (make-network-process
               :name "codewright-channel" :server t :host "127.0.0.1" :family 'ipv4 :service t
               :noquery t :coding 'utf-8-unix
               :filter #'codewright-channel--filter
               :sentinel #'codewright-channel--sentinel))
        (process-put codewright-channel--server 'token token))))
  (when (process-live-p codewright-channel--server)
    (format "emacs:%d:%s"
            (process-contact codewright-channel--server :service)
            (process-get codewright-channel--server 'token))))

(defun codewright-channel--sentinel (process event)
  "Count PROCESS when EVENT says that it has connected or ended."
  (cond
   ((string-prefix-p "open" event)
    (setq codewright-channel--connections (1+ codewright-channel--connections))
    (process-put process 'is-counted t)
    (if (> codewright-channel--connections codewright-channel--max-connections)
        (codewright-channel--close process)
      (run-at-time codewright-channel--hello-deadline nil
                   (lambda ()
                     (unless (process-get process 'is-known)
                       (codewright-channel--close process))))))
   ((not (process-live-p process)) (codewright-channel--close process))))

(defun codewright-channel--close (process)
  "Close the connection PROCESS."
  (when (process-get process 'is-counted)
    (process-put process 'is-counted nil)
    (setq codewright-channel--connections (1- codewright-channel--connections)))
  (when (process-live-p process)
    (delete-process process)))

(defun codewright-channel--filter (process text)
  "Answer the requests of PROCESS in TEXT."
  (let ((received (concat (process-get process 'received) text))
        at)
    (if (> (length received) codewright-channel--max-line)
        (codewright-channel--close process)
      (while (and (process-live-p process) (setq at (string-match "\n" received)))
        (let ((line (substring received 0 at)))
          (setq received (substring received (1+ at)))
          (codewright-channel--handle process line)))
      (process-put process 'received received))))

(defun codewright-channel--equal (a b)
  "Return whether the texts A and B are equal.
The time does not depend on where they differ."
  (and (stringp a)
       (= (length a) (length b))
       (zerop (apply #'+ (seq-mapn (lambda (x y) (if (eq x y) 0 1)) a b)))))

(defun codewright-channel--handle (process line)
  "Answer the request LINE of PROCESS."
  (let* ((request (condition-case nil
                      (json-parse-string line :array-type 'list :null-object nil :false-object nil)
                    (error nil)))
         (method (codewright-text request "method"))
         (id (codewright-get request "id")))
    (if (not (or (process-get process 'is-known)
                 (and (equal method "hello")
                      (codewright-channel--equal
                       (codewright-text request "params" "token")
                       (process-get codewright-channel--server 'token)))))
        (codewright-channel--close process)
      (process-put process 'is-known t)
      (let ((answer (condition-case problem
                        (list :result (codewright-channel--perform
                                       method (codewright-get request "params")))
                      (error (list :error (list :message (error-message-string problem)))))))
        (when (or (integerp id) (stringp id))
          (setq answer (append (list :id id) answer)))
        (process-send-string
         process
         (concat (json-serialize answer :null-object :null :false-object :false) "\n"))))))

(defun codewright-channel--perform (method params)
  "Return the result of METHOD with PARAMS."
  (pcase method
    ("hello" '(:editor "emacs" :version 1))
    ("open" (codewright-channel--visit params))
    ("diff" (codewright-channel--diff params))
    ("selection" (codewright-channel--selection))
    ("problems" (codewright-channel--problems))
    (_ (error "There is no such method"))))

(defun codewright-channel--visit (params)
  "Open the regular file that PARAMS name, and nothing else."
  (let ((file (codewright-text params "path"))
        (line (codewright-get params "line"))
        (character (codewright-get params "character")))
    (unless (and file
                 (string-prefix-p "/" file)
                 (not (find-file-name-handler file 'file-exists-p))
                 (file-regular-p file))
      (error "It is not a file"))
    (pop-to-buffer (find-file-noselect file))
    (when (natnump line)
      (widen)
      (goto-char (point-min))
      (forward-line (1- (max line 1)))
      (when (natnump character)
        (goto-char (min (+ (point) (1- (max character 1))) (line-end-position)))))
    nil))

(defun codewright-channel--diff (params)
  "Show the texts of PARAMS as a difference, without writing either."
  (let* ((file (or (codewright-text params "path") (error "`path' is missing")))
         (after (or (codewright-text params "after") (ignore-errors (codewright-files-text file)) ""))
         (text (codewright-files-unified file (or (codewright-text params "before") "") after)))
    (with-current-buffer (get-buffer-create "*codewright-diff*")
      (let ((inhibit-read-only t))
        (erase-buffer)
        (insert (or text "There is no difference\n"))
        (diff-mode)
        (setq buffer-read-only t)
        (goto-char (point-min)))
      (pop-to-buffer (current-buffer)))
    nil))

(defun codewright-channel--place (position)
  "Return POSITION of the current buffer with UTF-16 units, from 0."
  (save-excursion
    (goto-char position)
    (let ((units 0))
      (dolist (character (append (buffer-substring-no-properties (line-beginning-position) (point)) nil))
        (setq units (+ units (if (> character #xffff) 2 1))))
      `(:line ,(1- (line-number-at-pos nil t)) :character ,units))))

(defun codewright-channel--selection ()
  "Return the region of the file that the user saw last."
  (let ((buffer (seq-find #'buffer-file-name (buffer-list))))
    (if (not buffer)
        :null
      (with-current-buffer buffer
        (save-restriction
          (widen)
          (let* ((is-selected (and mark-active (mark t)))
                 (from (if is-selected (region-beginning) (point)))
                 (to (if is-selected (region-end) (point)))
                 (end (min to (+ from codewright-channel--max-selection)))
                 (result (list :path (buffer-file-name)
                               :start (codewright-channel--place from)
                               :end (codewright-channel--place to)
                               :text (buffer-substring-no-properties from end))))
            (if (< end to) (append result '(:truncated t)) result)))))))

(defun codewright-channel--severity (diagnostic)
  "Return the severity of the Flymake DIAGNOSTIC."
  (pcase (flymake-diagnostic-type diagnostic)
    ((or :warning 'eglot-warning) "warning")
    ((or :note 'eglot-note) "information")
    (_ "error")))

(defun codewright-channel--problems ()
  "Return the problems that Flymake reports for visited files."
  (let ((found nil))
    (dolist (buffer (seq-filter #'buffer-file-name (buffer-list)))
      (with-current-buffer buffer
        (when (bound-and-true-p flymake-mode)
          (dolist (it (flymake-diagnostics))
            (push (list :path (buffer-file-name)
                        :start (codewright-channel--place (flymake-diagnostic-beg it))
                        :end (codewright-channel--place (flymake-diagnostic-end it))
                        :severity (codewright-channel--severity it)
                        :message (truncate-string-to-width (flymake-diagnostic-text it) 2000))
                  found)))))
    (let ((shown (seq-take (reverse found) codewright-channel--max-problems)))
      (append (list :problems (vconcat shown))
              (and (> (length found) (length shown)) '(:truncated t))))))

(provide 'codewright-channel)
;;; codewright-channel.el ends here
