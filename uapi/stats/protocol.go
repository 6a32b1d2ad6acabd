package stats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// Version is that of requests and answers. A server answers every request of its version or a later one with its own.
const Version = 1

// opRead asks for readings of all devices of the process.
const opRead = "read"

// Bounds of what is taken from the other side, in bytes. An answer has about 1500 for a queue pair.
const (
	maxRequest = 4 << 10
	maxAnswer  = 64 << 20
)

// request is what a client sends: one line of JSON.
type request struct {
	Version int    `json:"version"`
	Op      string `json:"op"`
}

// Answer is what a process says to a request: one line of JSON, before which a space comes at once.
type Answer struct {
	Version int      `json:"version"`
	PID     int      `json:"pid"`
	Process string   `json:"process"`
	Error   string   `json:"error,omitempty"` // instead of devices: what was wrong with the request
	Devices []Device `json:"devices,omitempty"`
}

// check says what is wrong with a request, a line without its end.
func checkRequest(line []byte) error {
	var r request
	if err := json.Unmarshal(line, &r); err != nil {
		return fmt.Errorf("not a request: one line of JSON with version and op")
	}
	switch {
	case r.Version < Version:
		return fmt.Errorf("there is no version %d; this is version %d", r.Version, Version)
	case r.Op != opRead:
		return fmt.Errorf("unknown op %.32q; there is %q", r.Op, opRead)
	}
	return nil
}

// readAnswer reads an answer and makes it fit to be shown: what it says it is, and nothing that a terminal obeys.
func readAnswer(r io.Reader) (*Answer, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxAnswer+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) == 0:
		return nil, fmt.Errorf("no answer: %w", io.ErrUnexpectedEOF)
	case len(text) > maxAnswer:
		return nil, fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	case !bytes.HasSuffix(text, []byte("\n")):
		return nil, fmt.Errorf("the answer breaks off after %d bytes: %w", len(text), io.ErrUnexpectedEOF)
	}
	a := new(Answer)
	if err := json.Unmarshal(text, a); err != nil {
		return nil, fmt.Errorf("the answer is none: %w", err)
	}
	if a.Version != Version {
		return nil, fmt.Errorf("the answer is of version %d; this program knows version %d", a.Version, Version)
	}
	a.clean()
	if a.Error != "" {
		return nil, fmt.Errorf("refused: %s", a.Error)
	}
	return a, nil
}

// clean takes what is not printable out of the answer's texts.
func (a *Answer) clean() {
	a.Process, a.Error = clean(a.Process), clean(a.Error)
	for i := range a.Devices {
		d := &a.Devices[i]
		for _, s := range []*string{&d.Name, &d.Device, &d.Kind, &d.NetDev, &d.Process} {
			*s = clean(*s)
		}
		d.PID = a.PID
		for j := range d.Ports {
			d.Ports[j].State = clean(d.Ports[j].State)
			d.Ports[j].Counters = d.Ports[j].Counters.clean()
		}
		for j := range d.QueuePairs {
			q := &d.QueuePairs[j]
			q.Type, q.State, q.Process = clean(q.Type), clean(q.State), clean(q.Process)
			q.Counters = q.Counters.clean()
		}
	}
}

// clean leaves out counters with impossible names.
func (c Counters) clean() Counters {
	for name := range c {
		if name == "" || name != clean(name) || strings.ContainsRune(name, ' ') {
			delete(c, name)
		}
	}
	return c
}

func clean(s string) string {
	const longest = 256
	if len(s) > longest {
		s = s[:longest]
	}
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
