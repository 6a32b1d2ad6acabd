package refuse

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ruletext"
)

// Calls that are no commands.
const (
	callOpen = "open"
	callMmap = "mmap"
)

// Rules decide which calls and completions of a process fail, and which events
// it gets. They are safe for concurrent use.
type Rules struct {
	others int         // the first ones are not this device's own
	client kshim.Judge // for a kernel that does not judge itself
	fatal  atomic.Uint32

	mu    sync.Mutex
	rules []rule // the counts are guarded by mu
}

type rule struct {
	text   string
	call   string
	errno  syscall.Errno
	wc     func(abi.WCOpcode) bool // nil: of calls
	status abi.WCStatus            // WCSuccess: none
	event  *abi.EventType
	nth    uint64 // 0: any
	every  uint64 // 0: each
	seen   uint64 // calls of the name, completions of the kind
	hits   uint64
}

// count counts one more, and reports whether the rule hits it.
func (x *rule) count() bool {
	x.seen++
	hit := (x.nth == 0 || x.seen == x.nth) && (x.every == 0 || x.seen%x.every == 0)
	if hit {
		x.hits++
	}
	return hit
}

// Split divides the rules of a text, and of the files in it (kshim/ruletext),
// into those of packets and those of this package's kind, between semicolons.
func Split(text string) (packets, calls string, err error) {
	text, err = ruletext.Expand(text)
	if err != nil {
		return "", "", err
	}
	for line := range ruletext.Each(text) {
		if slices.ContainsFunc([]string{"call=", "wc=", "event="}, func(word string) bool { return strings.Contains(line, word) }) {
			calls += line + ";"
		} else {
			packets += line + ";"
		}
	}
	return strings.TrimSuffix(packets, ";"), strings.TrimSuffix(calls, ";"), nil
}

// Join puts rules behind others, each of which may be empty.
func Join(rules, more string) string { return strings.Trim(rules+";"+more, ";") }

// Parse reads rules (kshim/ruletext). An error names the word and what may
// stand there.
func Parse(text string) (*Rules, error) {
	r := &Rules{}
	return r, ruletext.Lines(text, func(line string) error {
		x, err := parseRule(line)
		r.rules = append(r.rules, x)
		return err
	})
}

// form is how a rule is written.
const form = "call=CREATE_QP errno=ENOMEM, wc=SEND status=REM_OP_ERR or event=PORT_ERR, and nth=2, every=10 or once"

func parseRule(line string) (rule, error) {
	r := rule{text: line}
	counts := 0
	err := ruletext.Words(line, func(word, key, value string, has bool) error {
		i := slices.IndexFunc(Grammar, func(w Word) bool { return w.Name == key })
		if i < 0 {
			return fmt.Errorf("%q is no word of a rule of calls; write %s", key, form)
		}
		w := &Grammar[i]
		if has != (w.form != "") {
			return fmt.Errorf("%q: write %s", word, w)
		}
		if err := w.set(&r, value); err != nil {
			return fmt.Errorf("%q: %w", word, err)
		}
		if w.counts {
			counts++
		}
		if counts > 1 {
			return fmt.Errorf("%q: a rule has one of nth=, after=, every= and once", word)
		}
		return nil
	})
	if err != nil {
		return r, err
	}
	if r.event != nil && r.wc == nil {
		r.wc = anyWC
	}
	ofCall, ofWC := r.call != "" && r.errno != 0, r.wc != nil && (r.status != 0 || r.event != nil)
	switch {
	case (r.call != "" || r.errno != 0) && (r.wc != nil || r.status != 0):
		return r, fmt.Errorf("it mixes words of calls and of completions; write %s", form)
	case !ofCall && !ofWC:
		return r, fmt.Errorf("it lacks call= or errno=, or wc= or status=; write %s", form)
	}
	return r, nil
}

// answer is the errno that a call gets in the kernel's place; 0 hands it on.
func (r *Rules) answer(call string) (errno syscall.Errno) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.rules {
		if x := &r.rules[i]; x.wc == nil && x.call == call && x.count() {
			errno = x.errno
		}
	}
	return errno
}

// judges reports whether there are rules of completions.
func (r *Rules) judges() bool {
	return slices.ContainsFunc(r.rules, func(x rule) bool { return x.wc != nil })
}

// judge is a kshim.Judge.
func (r *Rules) judge(op abi.WCOpcode) (v kshim.Verdict) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.rules {
		x := &r.rules[i]
		if x.wc == nil || !x.wc(op) || !x.count() {
			continue
		}
		v.Status = cmp.Or(x.status, v.Status)
		v.Error = v.Error || x.status != abi.WCSuccess
		if x.event != nil {
			v.Events = append(v.Events, *x.event)
			v.Error = v.Error || slices.Contains(endsQP, *x.event)
			if *x.event == abi.EventDeviceFatal {
				r.fatal.Add(1)
			}
		}
	}
	return v
}

// endsQP are the events of a queue pair that is in ERR (IBA 11.6.3.2).
var endsQP = []abi.EventType{abi.EventQPFatal, abi.EventQPReqErr, abi.EventQPAccessErr}

// Judge is for the client of a kernel that does not judge completions itself;
// nil is none.
func (r *Rules) Judge() kshim.Judge { return r.client }

// Idle returns the rules of the device's own that have hit nothing.
func (r *Rules) Idle() (idle []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.rules[r.others:] {
		if x.hits == 0 {
			idle = append(idle, x.text)
		}
	}
	return idle
}

// counters are the hits of the device's own rules, a line "name value" each.
func (r *Rules) counters() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for i, x := range r.rules[r.others:] {
		b.WriteString("fault_call_" + strconv.Itoa(i+1) + " " + strconv.FormatUint(x.hits, 10) + "\n")
	}
	return b.String()
}
