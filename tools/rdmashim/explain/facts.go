package explain

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"
)

//go:embed facts.txt
var factsText string

// fact is an entry of facts.txt.
type fact struct {
	kind         Kind
	name         string
	number       int // of an errno
	also         []string
	means        string
	causes, look []string
}

// facts are the entries of facts.txt in their order.
var facts = sync.OnceValue(func() (list []fact) {
	var f *fact
	var last *string
	put := func(to *[]string, text string) {
		*to = append(*to, text)
		last = &(*to)[len(*to)-1]
	}
	for line := range strings.Lines(factsText) {
		text := strings.TrimSpace(line)
		word, rest, _ := strings.Cut(text, " ")
		rest = strings.TrimSpace(rest)
		switch {
		case text == "" || word == "#":
		case strings.HasPrefix(line, "        "):
			*last += " " + text
		case !strings.HasPrefix(line, " "):
			list = append(list, fact{kind: Kind(word), name: rest, causes: []string{}, look: []string{}})
			f = &list[len(list)-1]
			if f.kind == Errno {
				name, number, _ := strings.Cut(rest, " ")
				f.name = name
				f.number, _ = strconv.Atoi(number)
			}
		case word == "also":
			put(&f.also, rest)
		case word == "means":
			f.means, last = rest, &f.means
		case word == "cause":
			put(&f.causes, rest)
		case word == "look":
			put(&f.look, rest)
		}
	}
	return list
})

// factOf is the fact of a kind and name, empty where there is none.
func factOf(k Kind, name string) fact {
	for _, f := range facts() {
		if f.kind == k && f.name == name {
			return f
		}
	}
	return fact{causes: []string{}, look: []string{}}
}

// entry makes an entry of the fact.
func (f fact) entry(k Kind, n int, name string, also ...string) Entry {
	return Entry{Kind: k, Name: name, Number: n, Also: append(also, f.also...), Means: f.means, Causes: f.causes, Look: f.look}
}
