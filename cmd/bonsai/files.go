package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"bonsai/cmd/bonsai/confine"
)

// namedFile is a file that a setting names, and where it does so.
type namedFile struct {
	path string
	// write says that it is made and replaced while the daemon runs; it need not be there yet.
	write bool

	file string // the configuration's; "" for a flag
	line int
	key  string
}

func (n *namedFile) problem(format string, args ...any) *problem {
	return &problem{file: n.file, line: n.line, key: n.key, text: fmt.Sprintf(format, args...)}
}

// inDir resolves a file name that the configuration file gives.
func inDir(dir, name string) string {
	if dir == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// reads resolves the name of a file that a setting has read, at start and at each reload.
func (c *Config) reads(dir, name string) (string, error) {
	name = inDir(dir, name)
	c.Files = append(c.Files, namedFile{path: name})
	return name, c.outside(name, false)
}

// open opens a file that a setting has read.
func (c *Config) open(dir, name string) (f *os.File, path string, err error) {
	if path, err = c.reads(dir, name); err != nil {
		return nil, "", err
	}
	f, err = os.Open(path)
	return f, path, err
}

// writes resolves the name of a file that is made while the daemon runs.
func (c *Config) writes(dir, name string) (path string, err error) {
	if path, err = c.inFolder(dir, name); err != nil {
		return "", err
	}
	return path, c.outside(path, true)
}

// inFolder resolves the name of a file that is yet to be made, in a folder that is there.
func (c *Config) inFolder(dir, name string) (string, error) {
	name = inDir(dir, name)
	folder := filepath.Dir(name)
	info, err := os.Stat(folder)
	if err != nil {
		return "", fmt.Errorf("%w; make the folder %s, or name another", err, folder)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s is no folder; name one", folder)
	}
	c.Files = append(c.Files, namedFile{path: name, write: true})
	return name, nil
}

// outside is an error for a file that the process can't reach since it locked itself in.
func (c *Config) outside(name string, write bool) error {
	if c.folders == nil || c.folders.Cover(name, write) {
		return nil
	}
	return errors.New(outsideText(name, c.folders, write) + "; name a file there, or restart bonsai")
}

// outsideText says that a file is outside of the folders, and which these are.
func outsideText(name string, folders confine.Folders, write bool) string {
	if write {
		return fmt.Sprintf("%s is outside of the folders that the running bonsai can write in, %s", name, strings.Join(folders.Paths(true), " "))
	}
	return fmt.Sprintf("%s is outside of the folders that the running bonsai can read, %s", name,
		strings.Join(append(folders.Paths(false), folders.Paths(true)...), " "))
}

// setUser looks the user up, but not in a process that is locked in: it became whom it had to.
func setUser(c *Config, values []string, _ string) (err error) {
	c.User = values[len(values)-1]
	if c.folders == nil {
		c.Account, err = confine.ParseUser(c.User)
	}
	return err
}

// lockedFolders are all that the daemon reaches files in while it runs.
func (c *Config) lockedFolders() (f confine.Folders) {
	// The metrics of the process are the kernel's, below /proc: those of others are closed to one who is
	// locked in.
	if _, err := os.Stat("/proc"); err == nil { // some containers have none
		f = append(f, confine.Folder{Path: "/proc"})
	}
	for i := range c.Files {
		f = f.Add(c.Files[i].path, c.Files[i].write)
	}
	// A reload may be the first that asks a zone over TLS.
	for _, folder := range certificates {
		if _, err := os.Stat(folder); err == nil {
			f = f.Add(filepath.Join(folder, "all"), false)
		}
	}
	return f
}

// certificates are the folders of whom systems trust, as crypto/x509 looks for them.
var certificates = []string{"/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted/pem"}

// becomeUser makes the process run as the user that is configured, who must be able to reach all files:
// those that are read also at a reload. The error joins a problem for each that is not.
func (c *Config) becomeUser() error {
	if c.Account == nil {
		return nil
	}
	if err := c.Account.Become(); err != nil {
		return fmt.Errorf("user: %w", err)
	}
	var errs []error
	for i := range c.Files {
		n := &c.Files[i]
		if n.key == "control" {
			continue // it is bound already, and given to the user
		}
		if folder := filepath.Dir(n.path); n.write && confine.CanWriteIn(folder) != nil {
			errs = append(errs, n.problem("user %s can't make files in %s; chown it to that user, or name another folder", c.User, folder))
			continue
		}
		if err := confine.CanRead(n.path); err != nil && !(n.write && errors.Is(err, os.ErrNotExist)) {
			errs = append(errs, n.problem("user %s can't read %s; let that user read it", c.User, n.path))
		}
	}
	return errors.Join(errs...)
}
