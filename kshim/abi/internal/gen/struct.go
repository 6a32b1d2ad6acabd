package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// field is a field of a Go structure.
type field struct {
	cField
	goName, goType, comment string
	bits                    string // of an integer of its size; none if there is none
}

// bitsOf are the bits of an integer by its size in bytes.
var bitsOf = map[int]string{1: "8", 2: "16", 4: "32", 8: "64"}

// fieldsOf returns the Go fields of s: those that are not reserved, and those
// that d names.
func fieldsOf(s *cStruct, d *decl) ([]field, error) {
	for _, w := range d.words {
		if !slices.ContainsFunc(s.fields, func(c cField) bool { return c.name == w.name }) {
			return nil, fmt.Errorf("no field %s", w.name)
		}
	}
	var fields []field
	for _, c := range s.fields {
		w, named := d.word(c.name)
		if !named && (strings.HasPrefix(c.name, "reserved") || strings.HasPrefix(c.name, "driver_data")) {
			continue
		}
		f := field{c, cmp.Or(w.goName, goName(c.name)), w.value, w.comment, bitsOf[c.size]}
		switch {
		case f.goType != "":
		case f.bits != "":
			f.goType = "uint" + f.bits
		default:
			f.goType = fmt.Sprintf("[%d]byte", c.size)
		}
		fields = append(fields, f)
	}
	return fields, nil
}

// emitSizes writes the size constants of the structures of a file.
func emitSizes(w *bytes.Buffer, g *golden, decls []*decl) {
	fmt.Fprint(w, "\n// Sizes of the kernel's structures in bytes.\nconst (\n")
	for _, d := range decls {
		if d.kind == "struct" {
			fmt.Fprintf(w, "%sSize = %d // %s\n", d.args[1], g.structs[d.args[0]].size, d.args[0])
		}
	}
	fmt.Fprint(w, ")\n")
}

func emitStruct(w *bytes.Buffer, s *cStruct, d *decl, structs map[string]bool) error {
	fields, err := fieldsOf(s, d)
	if err != nil {
		return err
	}
	name := d.args[1]
	size := name + "Size"
	comment(w, sentence(name+" is struct "+d.args[0], d.doc))
	fmt.Fprintf(w, "type %s struct {\n", name)
	for _, f := range fields {
		goType := strings.Replace(f.goType, "be64", "uint64", 1)
		member(w, fmt.Sprintf("%s %s `c:%q`", f.goName, goType, f.name), f.comment)
	}

	fmt.Fprintf(w, "}\n\n// Put encodes v into b[:%s].\nfunc (v *%s) Put(b []byte) {\nb = b[:%s]\n", size, name, size)
	end := 0
	for _, f := range fields {
		clearGap(w, end, f.off)
		fmt.Fprintln(w, f.put(structs))
		end = f.off + f.size
	}
	clearGap(w, end, s.size)

	fmt.Fprintf(w, "}\n\n// Parse decodes b[:%s].\nfunc (v *%s) Parse(b []byte) error {\n", size, name)
	fmt.Fprintf(w, "if len(b) < %s {\nreturn ErrShort\n}\n", size)
	for _, f := range fields {
		fmt.Fprintln(w, f.parse(structs))
	}
	fmt.Fprint(w, "return nil\n}\n")
	return nil
}

// clearGap zeroes the bytes between two fields, which no field has.
func clearGap(w *bytes.Buffer, from, to int) {
	if from < to {
		fmt.Fprintf(w, "clear(b[%d:%d])\n", from, to)
	}
}

// put returns the statement that encodes f.
func (f field) put(structs map[string]bool) string {
	value := "v." + f.goName
	switch {
	case structs[f.goType]:
		return fmt.Sprintf("%s.Put(b[%d:%d])", value, f.off, f.off+f.size)
	case f.bits == "" || f.goType[0] == '[':
		return fmt.Sprintf("copy(b[%d:%d], %s[:])", f.off, f.off+f.size, value)
	case f.goType == "be64":
		return fmt.Sprintf("be.PutUint64(b[%d:], %s)", f.off, value)
	case f.goType != "uint"+f.bits:
		value = fmt.Sprintf("uint%s(%s)", f.bits, value)
	}
	if f.size == 1 {
		return fmt.Sprintf("b[%d] = %s", f.off, value)
	}
	return fmt.Sprintf("le.PutUint%s(b[%d:], %s)", f.bits, f.off, value)
}

// parse returns the statement that decodes f.
func (f field) parse(structs map[string]bool) string {
	value := fmt.Sprintf("le.Uint%s(b[%d:])", f.bits, f.off)
	switch {
	case structs[f.goType]:
		return fmt.Sprintf("_ = v.%s.Parse(b[%d:%d])", f.goName, f.off, f.off+f.size)
	case f.bits == "" || f.goType[0] == '[':
		return fmt.Sprintf("copy(v.%s[:], b[%d:%d])", f.goName, f.off, f.off+f.size)
	case f.goType == "be64":
		return fmt.Sprintf("v.%s = be.Uint64(b[%d:])", f.goName, f.off)
	case f.size == 1:
		value = fmt.Sprintf("b[%d]", f.off)
	}
	if f.goType != "uint"+f.bits {
		value = fmt.Sprintf("%s(%s)", f.goType, value)
	}
	return fmt.Sprintf("v.%s = %s", f.goName, value)
}

// emitOffsets writes a constant for the offset of each field and one for the
// size, for structures that are read and written in place.
func emitOffsets(w *bytes.Buffer, s *cStruct, d *decl) error {
	fields, err := fieldsOf(s, d)
	if err != nil {
		return err
	}
	comment(w, d.doc)
	fmt.Fprint(w, "const (\n")
	for _, f := range fields {
		text := f.comment
		if f.bits != "" {
			text = strings.TrimSuffix("u"+f.bits+": "+text, ": ")
		}
		member(w, fmt.Sprintf("%s%s = %d", d.args[1], f.goName, f.off), text)
	}
	fmt.Fprintf(w, "%s = %d\n)\n", d.args[2], s.size)
	return nil
}
