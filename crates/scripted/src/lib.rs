//! A scripted model that speaks the real wire formats over a socket and checks what it is sent.
