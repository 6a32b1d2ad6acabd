package main

import (
	"fmt"
	"strings"
)

// decl is a declaration of layout.txt.
type decl struct {
	file  string
	kind  string   // a key of arity
	args  []string // the words that follow the kind
	doc   string
	words []word // those of the indented lines
}

// word is NAME[>GoName][=value] and the comment of its line.
type word struct{ name, goName, value, comment string }

// word returns the word for a C name, and whether there is one.
func (d *decl) word(name string) (word, bool) {
	for _, w := range d.words {
		if w.name == name {
			return w, true
		}
	}
	return word{}, false
}

// arity is how many words follow each kind: at least, and at most.
var arity = map[string][2]int{
	"file": {1, 1}, "skip": {1, 1}, "struct": {2, 2}, "offsets": {3, 3},
	"enum": {3, 4}, "flags": {3, 4}, "values": {3, 4},
}

func parseNotes(text string) ([]*decl, error) {
	var decls []*decl
	d := &decl{}
	for line := range strings.Lines(text) {
		body, comment, _ := strings.Cut(line, "//")
		words, comment := strings.Fields(body), strings.TrimSpace(comment)
		switch {
		case line[0] == '#' || len(words) == 0 && comment == "":
		case line[0] == '\t' && len(words) == 0:
			d.doc = strings.TrimSpace(d.doc + " " + comment)
		case line[0] == '\t':
			for _, s := range words {
				w := word{comment: comment}
				w.name, w.value, _ = strings.Cut(s, "=")
				w.name, w.goName, _ = strings.Cut(w.name, ">")
				d.words = append(d.words, w)
			}
		default:
			kind, args := words[0], words[1:]
			if n, ok := arity[kind]; !ok || len(args) < n[0] || len(args) > n[1] {
				return nil, fmt.Errorf("layout.txt: %q is not a declaration", strings.TrimSpace(body))
			}
			if kind == "file" {
				d = &decl{file: args[0]}
				continue
			}
			d = &decl{file: d.file, kind: kind, args: args, doc: comment}
			decls = append(decls, d)
		}
	}
	return decls, nil
}
