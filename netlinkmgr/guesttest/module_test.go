//go:build guest && linux

package guesttest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// loadByDep loads a module that a test needs, and what it depends on.
func loadByDep(name string) error {
	lists, err := filepath.Glob("/lib/modules/*/modules.dep")
	if err != nil || len(lists) != 1 {
		return errors.Join(err, errors.New("not one modules.dep"))
	}
	text, err := os.ReadFile(lists[0])
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		file, needs, _ := strings.Cut(strings.TrimSpace(line), ":")
		if filepath.Base(file) != name+".ko" {
			continue
		}
		files := append([]string{file}, strings.Fields(needs)...)
		for i := len(files) - 1; i >= 0; i-- {
			image, err := os.ReadFile(filepath.Join(filepath.Dir(lists[0]), files[i]))
			if err == nil {
				err = unix.InitModule(image, "")
			}
			if err != nil && !errors.Is(err, unix.EEXIST) {
				return err
			}
		}
		return nil
	}
	return os.ErrNotExist
}
