//! Questions that wait for an answer.

use codewright_proto::{QuestionId, QuestionRequest};

use super::Questions;
use crate::Error;

impl Questions<'_> {
    /// The questions that wait for a user, oldest first.
    #[must_use]
    pub fn pending(self) -> Vec<QuestionRequest> {
        self.0.questions.listed()
    }

    /// Answers a question: a list for each of its parts, in order.
    pub fn answer(self, id: &QuestionId, answers: Vec<Vec<String>>) -> Result<(), Error> {
        self.0.questions.answer(id, answers)
    }

    /// Refuses a question; the turn that asked ends.
    pub fn reject(self, id: &QuestionId) -> Result<(), Error> {
        self.0.questions.reject(id)
    }
}
