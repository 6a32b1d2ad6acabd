package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	files, err := generate(".")
	for name, text := range files {
		if err == nil {
			err = os.WriteFile(name, text, 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// generate returns the generated files of the package in dir by name.
func generate(dir string) (map[string][]byte, error) {
	var text []byte
	for _, name := range []string{"layout.golden", "ucm.golden"} {
		b, err := os.ReadFile(filepath.Join(dir, "testdata", name))
		if err != nil {
			return nil, err
		}
		text = append(text, b...)
	}
	c, err := parseGolden(string(text))
	if err != nil {
		return nil, err
	}
	notes, err := os.ReadFile(filepath.Join(dir, "layout.txt"))
	if err != nil {
		return nil, err
	}
	decls, err := parseNotes(string(notes))
	if err != nil {
		return nil, err
	}
	return emit(c, decls)
}
