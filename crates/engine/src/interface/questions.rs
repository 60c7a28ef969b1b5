//! Questions that wait for an answer.

use codewright_permission::{Power, Principal, may};
use codewright_proto::{QuestionId, QuestionRequest};

use super::Questions;
use crate::Error;

impl Questions<'_> {
    /// Returns the questions that wait for a user, oldest first.
    #[must_use]
    pub fn pending(self) -> Vec<QuestionRequest> {
        self.0.questions.listed()
    }

    /// Reports whether the answer to a waiting question decides whether a repository is trusted.
    #[must_use]
    pub fn is_about_trust(self, id: &QuestionId) -> bool {
        self.0.questions.needed(id) == Power::Trust
    }

    /// Answers a question for a principal, or rejects it without answers.
    ///
    /// # Errors
    ///
    /// Fails if the principal may not answer the question, or if the answers are invalid.
    pub fn answer_as(
        self,
        by: Principal,
        id: &QuestionId,
        answers: Option<Vec<Vec<String>>>,
    ) -> Result<(), Error> {
        if !may(by, self.0.questions.needed(id)) {
            return Err(Error::Forbidden { message: "only administrators decide about trust" });
        }
        match answers {
            Some(answers) => self.answer(id, answers),
            None => self.reject(id),
        }
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
