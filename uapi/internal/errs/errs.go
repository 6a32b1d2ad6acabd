package errs

import (
	"fmt"
	"strings"
	"syscall"
)

// Explained is an error with a sentence that says what was wrong and what to
// do.
type Explained struct {
	text string
	err  error
}

// Explain makes an error that Is err.
func Explain(err error, format string, args ...any) error {
	return &Explained{text: fmt.Sprintf(format, args...), err: err}
}

// Error is the sentence, and err in parentheses.
func (e *Explained) Error() string {
	if e.err == syscall.ENOMEM { // a queue or a table is full, and memory is not the matter
		return e.text
	}
	return e.text + " (" + e.err.Error() + ")"
}

// Unwrap returns err.
func (e *Explained) Unwrap() error { return e.err }

// Tried returns one error of the errors of all attempts, of which none
// succeeded; nil of none.
func Tried(failed []error) error {
	switch len(failed) {
	case 0:
		return nil
	case 1:
		return failed[0]
	}
	return tried(failed)
}

type tried []error

func (e tried) Error() string {
	texts := make([]string, len(e))
	for i, err := range e {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (e tried) Unwrap() []error { return e }
