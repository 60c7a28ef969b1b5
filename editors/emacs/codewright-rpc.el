;;; codewright-rpc.el --- JSON-RPC with the program  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The program as a child process: JSON-RPC 2.0 over lines on its standard
;; streams, as the Agent Client Protocol uses it.

;;; Code:

(require 'subr-x)

(defconst codewright-rpc-max-line (* 64 1024 1024)
  "The longest line of the program, in characters.")

(defconst codewright-rpc-deadline 60
  "The deadline of a request that does not run the model, in seconds.")

(defconst codewright-rpc--max-waiting 256
  "The most requests that wait for an answer.")

(defconst codewright-rpc--end-deadline 3
  "How long the program may take to end after its input is closed, in seconds.")

(defun codewright-get (object &rest keys)
  "Return the value of OBJECT at the path KEYS, or nil.
Values of other types than expected are missing values."
  (while (and keys object)
    (setq object (and (hash-table-p object) (gethash (pop keys) object))))
  object)

(defun codewright-text (object &rest keys)
  "Return the string of OBJECT at the path KEYS, or nil."
  (let ((value (apply #'codewright-get object keys)))
    (and (stringp value) value)))

(defun codewright-list (object &rest keys)
  "Return the list of OBJECT at the path KEYS, or nil."
  (let ((value (apply #'codewright-get object keys)))
    (and (listp value) value)))

(defun codewright-rpc-start (program directory handlers)
  "Start PROGRAM in DIRECTORY and return its process.
HANDLERS is a plist of functions: `:request' gets a method, parameters and a
function that answers with a failure or a result; `:notify' gets a method and
parameters; `:ended' gets a reason and whether the end was requested."
  (let* ((default-directory (file-name-as-directory directory))
         (errors (make-pipe-process
                  :name "codewright-log"
                  :buffer (get-buffer-create " *codewright-log*")
                  :noquery t
                  :filter #'codewright-rpc--log
                  :sentinel #'ignore))
         (process (make-process
                   :name "codewright"
                   :command (list program "acp")
                   :connection-type 'pipe
                   :coding 'utf-8-unix
                   :noquery t
                   :stderr errors
                   :filter #'codewright-rpc--filter
                   :sentinel #'codewright-rpc--sentinel)))
    (process-put process 'handlers handlers)
    (process-put process 'waiting (make-hash-table))
    (process-put process 'next 1)
    (process-put process 'errors errors)
    process))

(defun codewright-rpc--log (process text)
  "Append TEXT of PROCESS to the log, of which the end is kept."
  (when (buffer-live-p (process-buffer process))
    (with-current-buffer (process-buffer process)
      (goto-char (point-max))
      (insert text)
      (when (> (buffer-size) 65536)
        (delete-region (point-min) (- (point-max) 65536))))))

(defun codewright-rpc-live-p (process)
  "Return whether PROCESS can be used."
  (and process (process-live-p process) (not (process-get process 'is-finished))))

(defun codewright-rpc-request (process method params done &optional deadline)
  "Send METHOD with PARAMS to PROCESS.
DONE gets a failure, which is nil or has the key \"message\", and the result.
Without a DEADLINE in seconds, the request waits until the program ends."
  (let ((waiting (process-get process 'waiting))
        (id (process-get process 'next)))
    (cond
     ((not (codewright-rpc-live-p process))
      (funcall done (codewright-rpc--failure "the program is not running") nil))
     ((>= (hash-table-count waiting) codewright-rpc--max-waiting)
      (funcall done (codewright-rpc--failure "too many requests wait for an answer") nil))
     (t
      (process-put process 'next (1+ id))
      (let ((timer (and deadline
                        (run-at-time
                         deadline nil #'codewright-rpc--settle process id
                         (codewright-rpc--failure
                          (format "`%s' was not answered within %d s" method deadline))
                         nil))))
        (puthash id (cons done timer) waiting))
      (codewright-rpc--write process `(:jsonrpc "2.0" :id ,id :method ,method :params ,params))))))

(defun codewright-rpc-notify (process method params)
  "Send the notification METHOD with PARAMS to PROCESS."
  (when (codewright-rpc-live-p process)
    (codewright-rpc--write process `(:jsonrpc "2.0" :method ,method :params ,params))))

(defun codewright-rpc-stop (process)
  "End PROCESS: close its input, and kill it if it does not end in time."
  (when (codewright-rpc-live-p process)
    (process-put process 'is-stopping t)
    (process-send-eof process)
    (run-at-time codewright-rpc--end-deadline nil
                 (lambda ()
                   (when (process-live-p process)
                     (delete-process process))))))

(defun codewright-rpc--failure (message &optional code)
  "Return a failure with MESSAGE and CODE."
  (let ((failure (make-hash-table :test #'equal)))
    (puthash "message" message failure)
    (puthash "code" (or code -32603) failure)
    failure))

(defun codewright-rpc--write (process message)
  "Send MESSAGE to PROCESS."
  (process-send-string process (concat (json-serialize message :false-object :false) "\n")))

(defun codewright-rpc--settle (process id failure result)
  "Answer the request ID of PROCESS with FAILURE or RESULT."
  (let* ((waiting (process-get process 'waiting))
         (entry (gethash id waiting)))
    (when entry
      (remhash id waiting)
      (when (cdr entry)
        (cancel-timer (cdr entry)))
      (funcall (car entry) failure result))))

(defun codewright-rpc--sentinel (process event)
  "End the requests of PROCESS when EVENT says that it has ended."
  (unless (process-live-p process)
    (codewright-rpc--finish process (concat "the program ended: " (string-trim event)))))

(defun codewright-rpc--finish (process reason)
  "End the requests of PROCESS for REASON, once."
  (unless (process-get process 'is-finished)
    (process-put process 'is-finished t)
    (let ((waiting (process-get process 'waiting)))
      (dolist (id (hash-table-keys waiting))
        (codewright-rpc--settle process id (codewright-rpc--failure reason) nil)))
    (when (process-live-p process)
      (delete-process process))
    (delete-process (process-get process 'errors))
    (funcall (plist-get (process-get process 'handlers) :ended)
             reason (process-get process 'is-stopping))))

(defun codewright-rpc--filter (process text)
  "Collect TEXT of PROCESS, and handle the lines that are complete.
The pieces of a long line are not copied for every piece."
  (let ((from 0) at)
    (while (setq at (string-match "\n" text from))
      (let ((line (apply #'concat (nreverse (cons (substring text from at)
                                                  (process-get process 'pieces))))))
        (process-put process 'pieces nil)
        (process-put process 'length 0)
        (setq from (1+ at))
        (unless (or (string-blank-p line) (process-get process 'is-finished))
          (codewright-rpc--handle process line))))
    (when (< from (length text))
      (let ((length (+ (or (process-get process 'length) 0) (- (length text) from))))
        (process-put process 'length length)
        (process-put process 'pieces (cons (substring text from) (process-get process 'pieces)))
        (when (> length codewright-rpc-max-line)
          (codewright-rpc--finish process "the program sent a line that is too long"))))))

(defun codewright-rpc--handle (process line)
  "Handle a LINE of PROCESS."
  (let ((message (condition-case nil
                     (json-parse-string line :array-type 'list :null-object nil :false-object nil)
                   (error nil))))
    (if (not (hash-table-p message))
        (codewright-rpc--finish process "the program sent a line that is not JSON")
      (let ((method (codewright-text message "method"))
            (id (gethash "id" message))
            (params (gethash "params" message))
            (handlers (process-get process 'handlers)))
        (cond
         ((null method)
          (codewright-rpc--settle process id (gethash "error" message) (gethash "result" message)))
         ((null id) (funcall (plist-get handlers :notify) method params))
         (t (codewright-rpc--serve process method params id)))))))

(defun codewright-rpc--serve (process method params id)
  "Answer the request ID of PROCESS for METHOD with PARAMS."
  (let* ((is-answered nil)
         (answer (lambda (failure result)
                   (unless (or is-answered (not (codewright-rpc-live-p process)))
                     (setq is-answered t)
                     (codewright-rpc--write
                      process
                      (if failure
                          `(:jsonrpc "2.0" :id ,id :error ,failure)
                        `(:jsonrpc "2.0" :id ,id :result ,result)))))))
    (condition-case problem
        (funcall (plist-get (process-get process 'handlers) :request) method params answer)
      (error
       (funcall answer (codewright-rpc--failure (error-message-string problem)) nil)))))

(provide 'codewright-rpc)
;;; codewright-rpc.el ends here
