package explain

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// lists holds the entries of every kind.
var lists = sync.OnceValue(func() map[Kind][]Entry {
	return map[Kind][]Entry{
		Status: statusList(), Errno: errnoList(), Opcode: opcodeList(), Syndrome: syndromeList(),
		Timer: timerList(), Timeout: timeoutList(), Reject: rejectList(),
		Event: eventList(), CMEvent: cmEventList(), Fault: faultList(),
	}
})

// kindWords are the words that may stand before a name or number.
var kindWords = map[string]Kind{
	"status": Status, "wc": Status, "errno": Errno, "opcode": Opcode, "syndrome": Syndrome, "aeth": Syndrome,
	"timer": Timer, "rnr": Timer, "rnr_timer": Timer, "min_rnr_timer": Timer, "rnrtimer": Timer, "timeout": Timeout,
	"ack_timeout": Timeout, "reject": Reject, "rej": Reject, "reason": Reject,
	"event": Event, "cm": CMEvent, "fault": Fault,
}

// Find returns the entries that the words may mean: a name in any spelling, or
// a number, with the word for a kind in front or without. A kind alone gives
// all of it, and the first words of names that no name is ("NAK", "REM") all
// those. Events are found by number only with their kind in front: users do not
// see them as numbers; words of faults with it only.
func Find(question string) []Entry {
	words := strings.Fields(question)
	if len(words) == 0 {
		return nil
	}
	everywhere := Kinds[:slices.Index(Kinds, Fault)] // its words are everybody's
	if _, numeric := number(strings.Join(words, " ")); numeric {
		everywhere = everywhere[:slices.Index(Kinds, Event)]
	}
	found := find(everywhere, strings.Join(words, " "))
	k, kind := kindWords[strings.ToLower(words[0])]
	if kind {
		if len(words) == 1 && len(found) == 0 {
			return All(k)
		}
		for _, e := range find([]Kind{k}, strings.Join(words[1:], " ")) {
			if !slices.ContainsFunc(found, func(f Entry) bool { return f.Kind == e.Kind && f.Number == e.Number }) {
				found = append(found, e)
			}
		}
	}
	if len(found) == 0 {
		found = begunBy(everywhere, words)
	}
	if len(found) == 0 && kind {
		found = begunBy([]Kind{k}, words[1:])
	}
	return found
}

// begunBy returns the entries that have a name of which these are the first
// words.
func begunBy(kinds []Kind, first []string) (found []Entry) {
	begin := spaced(strings.Join(first, " "))
	if begin == " " {
		return nil
	}
	for _, k := range kinds {
		for _, e := range lists()[k] {
			if slices.ContainsFunc(e.names(), func(name string) bool { return strings.HasPrefix(spaced(name), begin) }) {
				found = append(found, e)
			}
		}
	}
	return found
}

// spaced is a text's words of letters and digits in capitals, a space behind
// each.
func spaced(s string) string {
	words := strings.FieldsFunc(strings.ToUpper(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return strings.Join(words, " ") + " "
}

func find(kinds []Kind, what string) (found []Entry) {
	n, numeric := number(what)
	key := normal(what)
	for _, k := range kinds {
		for _, e := range lists()[k] {
			if numeric && e.Number == n || numeric && k == Errno && e.Number == -n || !numeric && key != "" && e.named(key) {
				found = append(found, e)
			}
		}
	}
	return found
}

// number reads decimal and 0x… .
func number(s string) (int, bool) {
	n, err := strconv.ParseInt(s, 0, 32)
	if err != nil {
		n, err = strconv.ParseInt(s, 10, 32) // 08 is 8
	}
	return int(n), err == nil
}

// named reports whether one of the entry's names is key, in its normal form.
// Names that are numbers are found as such: the rest of "wc 12" is no errno.
func (e *Entry) named(key string) bool {
	return slices.ContainsFunc(e.names(), func(name string) bool {
		_, numeric := number(name)
		return !numeric && normal(name) == key
	})
}

func (e *Entry) names() []string { return append([]string{e.Name}, e.Also...) }

// prefixes are the prefixes of a status' name in verbs, the kernel and this
// module.
var prefixes = []string{"IBVWC", "IBWC", "IBUVERBSWC", "UAPIWC", "ABIWC", "WC", "IBVEVENT", "IBEVENT", "RDMACMEVENT", "SYSCALLE", "UNIXE"}

// normal is a name without what differs between spellings: case, separators,
// and the prefixes of programming languages.
func normal(s string) string {
	var b strings.Builder
	s = strings.ToUpper(s)
	for i := range len(s) {
		letter, digit := s[i] >= 'A' && s[i] <= 'Z', s[i] >= '0' && s[i] <= '9'
		point := s[i] == '.' && i+1 < len(s) && s[i+1] >= '0' && s[i+1] <= '9'
		if letter || digit || point {
			b.WriteByte(s[i])
		}
	}
	text := b.String()
	for _, p := range prefixes {
		if rest, ok := strings.CutPrefix(text, p); ok && rest != "" {
			if strings.HasSuffix(p, "E") { // of an errno, which begins with it
				rest = "E" + rest
			}
			return rest
		}
	}
	return text
}
