package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// value is a value of an enumeration.
type value struct {
	name   string // the kernel's, without the prefix
	number uint64
	word   word
}

// valuesOf returns the values of d: those of the golden files that have its C
// prefix, changed and added to as its words say.
func valuesOf(g *golden, d *decl) ([]value, error) {
	var values []value
	var prefix string
	known := map[string]bool{}
	if len(d.args) > 3 {
		prefix = d.args[3]
	}
	for _, v := range g.values {
		name, ok := strings.CutPrefix(v.name, prefix)
		if !ok || prefix == "" {
			continue
		}
		known[name] = true
		if _, dropped := d.word("-" + name); !dropped {
			w, _ := d.word(name)
			values = append(values, value{name, v.number, w})
		}
	}
	number := uint64(0)
	for _, w := range d.words {
		if known[strings.TrimPrefix(w.name, "-")] {
			continue
		}
		switch {
		case w.value != "":
			var err error
			if number, err = strconv.ParseUint(w.value, 0, 32); err != nil {
				return nil, err
			}
		case prefix != "":
			return nil, fmt.Errorf("%s%s is not in the golden files and has no number", prefix, w.name)
		case d.kind == "flags":
			number = max(1, number*2)
		case len(values) > 0:
			number++
		}
		values = append(values, value{w.name, number, w})
	}
	if d.kind != "values" {
		slices.SortStableFunc(values, func(a, b value) int { return cmp.Compare(a.number, b.number) })
	}
	return values, nil
}

func emitEnum(w *bytes.Buffer, g *golden, d *decl) error {
	values, err := valuesOf(g, d)
	if err != nil {
		return err
	}
	typ := d.args[0]
	constant, entry := "%s%s %s = %d", "%d: %q,"
	if d.kind == "flags" {
		constant, entry = "%s%s %s = %#x", "{%#x, %q},"
	}
	var names []string
	comment(w, typ+" is "+d.doc)
	fmt.Fprintf(w, "type %s %s\n\n// Values of %s.\nconst (\n", typ, d.args[1], typ)
	for _, v := range values {
		name := cmp.Or(v.word.goName, goName(v.name))
		member(w, fmt.Sprintf(constant, d.args[2], name, typ, v.number), v.word.comment)
		names = append(names, fmt.Sprintf(entry, v.number, v.name))
	}
	fmt.Fprint(w, ")\n")

	switch d.kind {
	case "enum":
		fmt.Fprintf(w, "\nvar names%s = []string{\n", typ)
		wrap(w, "\t", names)
		fmt.Fprintf(w, "}\n\n// String returns the kernel's name without its prefix, or %s(n).\n", typ)
		fmt.Fprintf(w, "func (v %s) String() string { return enumString(names%s, v, %q) }\n", typ, typ, typ)
	case "flags":
		fmt.Fprintf(w, "\nvar names%s = []flagName{\n", typ)
		wrap(w, "\t", names)
		fmt.Fprint(w, "}\n\n// String lists the flags by name, joined by \"|\"; unknown bits in hexadecimal.\n")
		fmt.Fprintf(w, "func (v %s) String() string { return flagString(uint32(v), names%s) }\n", typ, typ)
	}
	return nil
}
