// Command sh is the guest's /bin/sh: 'vm run -- sh -c …' starts it, #!/bin/sh
// names it, and system(3) of C programs runs it.
//
// It is no shell for a terminal, and has no language of its own: mvdan.cc/sh
// parses and runs scripts (POSIX's language and most of bash's). main.go reads
// the command line as sh(1) has it, which u-root's gosh does not: options,
// several in a word, and the script's parameters.
package main
