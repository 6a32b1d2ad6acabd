package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// explainLimit adds to an error of a limit what raises it. To that of a full
// file system it adds the variable of the environment that names another place,
// if the file is a temporary one or one of the cache, and the command line does
// not name it. Compilers and apt-get run below the commands and have no errno,
// so the text is what counts.
func explainLimit(err error, line []string) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if errors.Is(err, syscall.EMFILE) && !strings.Contains(text, "ulimit") {
		return fmt.Errorf("%w; 'ulimit -n 1024' allows more", err)
	}
	if !strings.Contains(strings.ToLower(text), syscall.ENOSPC.Error()) || strings.Contains(text, "; set XDG_") {
		return err
	}
	cache, _ := os.UserCacheDir()
	for _, place := range []struct{ dir, variable string }{{cache, "XDG_CACHE_HOME"}, {os.TempDir(), "TMPDIR"}} {
		below := filepath.Clean(place.dir) + "/"
		if strings.Contains(text, below) && !strings.Contains(strings.Join(line, " "), below) {
			return fmt.Errorf("%w; make room there, or set %s to a directory with room", err, place.variable)
		}
	}
	return err
}
