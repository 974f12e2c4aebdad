// Package confine takes from the process what it needs no more: root's user, capabilities, files outside
// a few folders, and most system calls. It knows nothing of DNS, nor of the daemon's settings.
//
//	user.go           a user to become; user_unix.go and user_other.go become it
//	lock_linux.go     the order of what is given up; lock_other.go says that there is nothing
//	caps_linux.go     capabilities
//	landlock_linux.go files, by folder
//	seccomp_linux.go  system calls; calls_linux_*.go have those of one machine
//
// What is given up can't be had again, and holds for all threads that are and will be.
package confine

import (
	"path/filepath"
	"strings"
)

// Folder is a folder, with all below it, that stays open.
type Folder struct {
	Path  string
	Write bool // files may be made, written, replaced and removed
}

// Folders are all that stay open.
type Folders []Folder

// Add opens the folder of a file, and that of what the file is a link to. A file that is not there yet
// counts with its folder alone.
func (f Folders) Add(file string, write bool) Folders {
	f = f.add(filepath.Dir(file), write)
	if real, err := filepath.EvalSymlinks(file); err == nil {
		f = f.add(filepath.Dir(real), write)
	}
	return f
}

func (f Folders) add(path string, write bool) Folders {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	for i := range f {
		if f[i].Path == path {
			f[i].Write = f[i].Write || write
			return f
		}
	}
	return append(f, Folder{path, write})
}

// Cover says whether a file may be reached. Of one whose place can't be told, since a folder on the way
// to it lacks or is closed, it says yes: opening it tells what is wrong.
func (f Folders) Cover(file string, write bool) bool {
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		dir, err := filepath.EvalSymlinks(filepath.Dir(file))
		if err != nil {
			return true
		}
		real = filepath.Join(dir, filepath.Base(file))
	}
	if real, err = filepath.Abs(real); err != nil {
		return true
	}
	for _, folder := range f {
		if (folder.Write || !write) && isBelow(filepath.Dir(real), folder.Path) {
			return true
		}
	}
	return false
}

// isBelow says whether a clean path is a folder's, or lies below it.
func isBelow(path, folder string) bool {
	separator := string(filepath.Separator)
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, separator)+separator)
}

// Paths lists the folders that may be written, or those that may only be read.
func (f Folders) Paths(write bool) (paths []string) {
	for _, folder := range f {
		if folder.Write == write {
			paths = append(paths, folder.Path)
		}
	}
	return paths
}

// Outcome tells of each part what holds now, in words for the log.
type Outcome struct {
	Capabilities, Landlock, Seccomp string
	// Locked says that files outside the folders can't be reached.
	Locked bool
	// Whole says that nothing was left out.
	Whole bool
}
