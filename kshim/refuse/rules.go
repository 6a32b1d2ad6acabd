package refuse

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ruletext"
	"github.com/rdmashim/rdmashim/kshim/trace"
)

// Calls that are no commands.
const (
	callOpen = "open"
	callMmap = "mmap"
)

// Rules decide which calls of a process fail. They are safe for concurrent use.
type Rules struct {
	mu    sync.Mutex
	rules []rule // guarded by mu
}

type rule struct {
	text  string
	call  string
	errno syscall.Errno
	nth   uint64 // 0: any
	every uint64 // 0: each
	seen  uint64 // calls of the name
	hits  uint64
}

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
const form = "call=CREATE_QP errno=ENOMEM, and nth=2, every=10 or once"

func parseRule(line string) (rule, error) {
	r := rule{text: line}
	err := ruletext.Words(line, func(word, key, value string, _ bool) (err error) {
		switch key {
		case "call":
			if r.call = plain(value); !slices.Contains(names(), r.call) {
				err = fmt.Errorf("no such call; there are %s", strings.Join(names(), ", "))
			}
		case "errno":
			if r.errno = trace.Errno(value); r.errno == 0 {
				err = errors.New("no errno of that name; write ENOMEM")
			}
		case "nth":
			err = number(&r.nth, value)
		case "every":
			err = number(&r.every, value)
		case "once":
			r.nth = 1
		default:
			return fmt.Errorf("%q is no word of a rule; write %s", key, form)
		}
		if err != nil {
			return fmt.Errorf("%q: %w", word, err)
		}
		return nil
	})
	if err != nil {
		return r, err
	}
	if r.call == "" || r.errno == 0 {
		return r, fmt.Errorf("it lacks call= or errno=; write %s", form)
	}
	return r, nil
}

func number(dst *uint64, text string) (err error) {
	if *dst, err = strconv.ParseUint(text, 10, 32); err != nil || *dst == 0 {
		return fmt.Errorf("not a number from 1 on")
	}
	return nil
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

// answer is the errno that a call gets in the kernel's place; 0 hands it on.
func (r *Rules) answer(call string) (errno syscall.Errno) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.rules {
		x := &r.rules[i]
		if x.call != call {
			continue
		}
		x.seen++
		if (x.nth == 0 || x.seen == x.nth) && (x.every == 0 || x.seen%x.every == 0) {
			x.hits++
			errno = x.errno
		}
	}
	return errno
}

// Idle returns the rules by which no call has failed.
func (r *Rules) Idle() (idle []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.rules {
		if r.rules[i].hits == 0 {
			idle = append(idle, r.rules[i].text)
		}
	}
	return idle
}
