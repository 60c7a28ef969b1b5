//! Questions that wait for an answer.

use codewright_proto::{QuestionId, QuestionRequest};

use super::Questions;
use crate::Error;

impl Questions<'_> {
    /// Returns the questions that wait for a user, oldest first.
    #[must_use]
    pub fn pending(self) -> Vec<QuestionRequest> {
        self.0.questions.listed()
    }

    /// Reports whether only an administrator may answer a waiting question, on a server with users.
    #[must_use]
    pub fn needs_administrator(self, id: &QuestionId) -> bool {
        self.0.questions.needs_administrator(id)
    }

    /// Answers a question with one list for each part.
    pub fn answer(self, id: &QuestionId, answers: Vec<Vec<String>>) -> Result<(), Error> {
        self.0.questions.answer(id, answers)
    }

    /// Rejects a question, which ends its turn.
    pub fn reject(self, id: &QuestionId) -> Result<(), Error> {
        self.0.questions.reject(id)
    }
}
