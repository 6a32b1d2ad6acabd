package refuse

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/trace"
)

// Word is a word of the grammar.
type Word struct {
	Name string
	form string // of its value; "" has none
	Text string // what it does

	set    func(*rule, string) error
	counts bool // which of them the rule hits
}

// String is the word as it is written.
func (w *Word) String() string { return strings.TrimSuffix(w.Name+"="+w.form, "=") }

// Grammar is all words.
var Grammar = []Word{
	{"call", "CREATE_QP", "calls of this name, as in a trace", setCall, false},
	{"errno", "ENOMEM", "the call is answered so in the kernel's place", func(r *rule, v string) error {
		if r.errno = trace.Errno(v); r.errno == 0 {
			return errors.New("no errno of that name; write ENOMEM")
		}
		return nil
	}, false},
	{"wc", "SEND or any", "completions with success of this operation, or of any", setWC, false},
	{"status", "REM_OP_ERR", "the completion has this status, its queue pair is in ERR and what follows is flushed", func(r *rule, v string) error {
		return find(&r.status, v, func(s abi.WCStatus) bool { return s != abi.WCSuccess })
	}, false},
	{"event", "DEVICE_FATAL", "this event follows the completion, of its queue pair, its queue, the port or the device", func(r *rule, v string) error {
		r.event = new(abi.EventType)
		return find(r.event, v, func(e abi.EventType) bool { return e.Element() <= abi.ElementQP })
	}, false},
	{"nth", "3", "the third of them in the process", func(r *rule, v string) error { return number(&r.nth, v) }, true},
	{"after", "10", "the same, for events: behind the tenth completion", func(r *rule, v string) error { return number(&r.nth, v) }, true},
	{"every", "10", "each tenth of them", func(r *rule, v string) error { return number(&r.every, v) }, true},
	{"once", "", "the first of them", func(r *rule, _ string) error { r.nth = 1; return nil }, true},
}

func number(dst *uint64, text string) (err error) {
	if *dst, err = strconv.ParseUint(text, 10, 32); err != nil || *dst == 0 {
		return fmt.Errorf("not a number from 1 on")
	}
	return nil
}

func setCall(r *rule, text string) error {
	if r.call = plain(text); !slices.Contains(names(), r.call) {
		return fmt.Errorf("no such call; there are %s", strings.Join(names(), ", "))
	}
	return nil
}

func anyWC(abi.WCOpcode) bool { return true }

func setWC(r *rule, text string) error {
	if r.wc = anyWC; text == "any" {
		return nil
	}
	if strings.Contains(text, "=") { // a word of its own
		return fmt.Errorf("write wc=any %s, or instead of any an operation", text)
	}
	var op abi.WCOpcode
	if err := find(&op, text, anyWC); err != nil {
		return fmt.Errorf("%w, and any", err)
	}
	r.wc = func(of abi.WCOpcode) bool { return of == op }
	return nil
}

// find looks a name up among the kernel's of a kind that may be meant.
func find[T interface {
	~uint32
	String() string
}](dst *T, text string, may func(T) bool) error {
	var list []string
	for v := range T(256) {
		switch name := v.String(); {
		case strings.Contains(name, "(") || !may(v): // without a name
		case name == text:
			*dst = v
			return nil
		default:
			list = append(list, name)
		}
	}
	return fmt.Errorf("no such name; there are %s", strings.Join(list, ", "))
}

// names are the calls that rules may name.
func names() []string {
	list := []string{callOpen, callMmap}
	for _, e := range abi.Schema() {
		if name := plain(e.ShortName()); !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// plain is a command's name whichever way the call goes, by write or by a
// method: CREATE_QP is EX_CREATE_QP and QP_CREATE, too.
func plain(name string) string {
	name = strings.TrimPrefix(name, "EX_")
	for _, verb := range []string{"CREATE", "DESTROY"} {
		if object, ok := strings.CutSuffix(name, "_"+verb); ok {
			return verb + "_" + object
		}
	}
	return name
}
