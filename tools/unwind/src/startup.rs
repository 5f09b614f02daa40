// SPDX-License-Identifier: GPL-2.0

//! The files whose code a program executes when it starts: interpreters and libraries.
//!
//! Looks for them where the kernel and the dynamic linker would, without running any. A library that a program opens
//! later (dlopen) is not found.

use object::elf::{FileHeader64, ProgramHeader64, DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_STRTAB};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use object::{LittleEndian, ReadCache, ReadRef};
use std::collections::{HashMap, HashSet, VecDeque};
use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use system::regular_file;

/// Maximum number of files. The largest programs of Debian need some 300 libraries.
const MAX_FILES: usize = 1024;

/// Maximum number of scripts whose interpreter is a script; the kernel's limit.
const MAX_SCRIPTS: usize = 5;

/// The bytes of a script that the kernel reads.
const SCRIPT_HEAD: usize = 256;

/// The dynamic linker's list of libraries.
const CACHE: &str = "/etc/ld.so.cache";

/// Directories of libraries, beside that of the dynamic linker.
const DIRECTORIES: [&str; 5] = ["/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib"];

type Endian = LittleEndian;

/// Opens the files that `programs` start with, the programs among them. Their positions are anywhere.
pub fn files(programs: &[PathBuf]) -> Vec<File> {
    let mut startup = Startup::default();
    for program in programs {
        startup.add_program(program);
    }
    startup.files
}

#[derive(Default)]
struct Startup {
    files: Vec<File>,
    /// Libraries by name, from [`CACHE`].
    cached: Option<HashMap<Vec<u8>, Vec<PathBuf>>>,
}

/// An ELF file that is loaded.
struct Loaded {
    path: PathBuf,
    headers: Headers,
    /// The directories of `DT_RPATH`, of this file and of those that need it.
    rpath: Vec<PathBuf>,
}

/// The headers of a file that the dynamic linker reads.
#[derive(Default)]
struct Headers {
    machine: u16,
    interpreter: Option<PathBuf>,
    needed: Vec<Vec<u8>>,
    rpath: Option<Vec<u8>>,
    runpath: Option<Vec<u8>>,
}

impl Startup {
    /// Adds a program or a script, and what it starts with.
    fn add_program(&mut self, program: &Path) {
        let mut path = program.to_owned();
        for _ in 0..=MAX_SCRIPTS {
            let Ok(file) = regular_file::open(&path) else {
                return;
            };
            if let Some(headers) = Headers::read(&file) {
                // The linker replaces $ORIGIN by the directory of the program itself, not of a link.
                path = fs::canonicalize(&path).unwrap_or(path);
                self.files.push(file);
                return self.add_libraries(path, headers);
            }
            match interpreter_of_script(&file) {
                Some(interpreter) => path = interpreter,
                None => return,
            }
        }
    }

    /// Adds a program's dynamic linker and its libraries.
    fn add_libraries(&mut self, path: PathBuf, headers: Headers) {
        // A static program has no libraries.
        let Some(interpreter) = headers.interpreter.clone() else {
            return;
        };
        self.files.extend(regular_file::open(&interpreter));
        let interpreter = fs::canonicalize(&interpreter).unwrap_or(interpreter);
        let own = interpreter.parent().into_iter();
        let last: Vec<_> = own.chain(DIRECTORIES.map(Path::new)).collect();
        let machine = headers.machine;
        let preloaded = variable("LD_PRELOAD");
        let preloaded = preloaded.split(|byte| b" :".contains(byte));
        let preloaded: Vec<_> = preloaded.map(<[u8]>::to_vec).collect();
        let mut known = HashSet::new();
        let mut program = Loaded {
            path,
            headers,
            rpath: Vec::new(),
        };
        program.headers.needed.splice(0..0, preloaded);
        let mut waiting = VecDeque::from([program]);
        while let Some(mut loaded) = waiting.pop_front() {
            let directories = loaded.directories();
            for name in &loaded.headers.needed {
                if name.is_empty() || self.files.len() >= MAX_FILES || !known.insert(name.clone()) {
                    continue;
                }
                for path in self.candidates(name, &directories, &last) {
                    let Ok(file) = regular_file::open(&path) else {
                        continue;
                    };
                    let headers = Headers::read(&file);
                    let Some(headers) = headers.filter(|headers| headers.machine == machine) else {
                        continue;
                    };
                    self.files.push(file);
                    let rpath = loaded.rpath.clone();
                    waiting.push_back(Loaded {
                        path,
                        headers,
                        rpath,
                    });
                    break;
                }
            }
        }
    }

    /// The paths that a library may have, in the linker's order.
    fn candidates(&mut self, name: &[u8], first: &[PathBuf], last: &[&Path]) -> Vec<PathBuf> {
        let path = Path::new(OsStr::from_bytes(name));
        if name.contains(&b'/') {
            return vec![path.to_owned()];
        }
        let cached = self.cached.get_or_insert_with(|| {
            parse_cache(&regular_file::read(Path::new(CACHE)).unwrap_or_default())
        });
        let mut paths: Vec<_> = first.iter().map(|directory| directory.join(path)).collect();
        paths.extend(cached.get(name).into_iter().flatten().cloned());
        paths.extend(last.iter().map(|directory| directory.join(path)));
        paths
    }
}

impl Loaded {
    /// The directories in which the linker looks for a library of this file first.
    fn directories(&mut self) -> Vec<PathBuf> {
        let origin = self.path.parent().unwrap_or(Path::new("/"));
        let split = |list: &[u8]| -> Vec<PathBuf> {
            let names = list.split(|byte| b":;".contains(byte));
            let names = names.filter(|name| !name.is_empty());
            names.map(|name| with_origin(name, origin)).collect()
        };
        if let (Some(rpath), None) = (&self.headers.rpath, &self.headers.runpath) {
            self.rpath.splice(0..0, split(rpath));
        }
        let mut all = match self.headers.runpath {
            Some(_) => Vec::new(),
            None => self.rpath.clone(),
        };
        all.extend(split(&variable("LD_LIBRARY_PATH")));
        all.extend(split(self.headers.runpath.as_deref().unwrap_or_default()));
        all
    }
}

impl Headers {
    /// The headers of an ELF file with 64-bit headers.
    fn read(file: &File) -> Option<Self> {
        let data = ReadCache::new(file);
        let header = FileHeader64::<Endian>::parse(&data).ok()?;
        let segments = header.program_headers(LittleEndian, &data).ok()?;
        let mut headers = Self {
            machine: header.e_machine(LittleEndian),
            ..Self::default()
        };
        for segment in segments {
            if let Ok(Some(name)) = segment.interpreter(LittleEndian, &data) {
                headers.interpreter = Some(OsStr::from_bytes(name).into());
            }
            if let Ok(Some(entries)) = segment.dynamic(LittleEndian, &data) {
                headers.read_dynamic(&data, segments, entries);
            }
        }
        Some(headers)
    }

    fn read_dynamic<'data, R: ReadRef<'data>, D: Dyn<Endian = Endian>>(
        &mut self,
        data: R,
        segments: &[ProgramHeader64<Endian>],
        entries: &[D],
    ) {
        let of = |tag: u32| {
            let entries = entries.iter();
            let entries = entries.filter(move |entry| entry.tag32(LittleEndian) == Some(tag));
            entries.map(|entry| entry.d_val(LittleEndian).into())
        };
        let Some(names) = of(DT_STRTAB).next().and_then(|at| offset(segments, at)) else {
            return;
        };
        let end = data.len().unwrap_or(0);
        let text = |at: u64| {
            let begin = names.checked_add(at).filter(|begin| *begin < end)?;
            let bytes = data.read_bytes_at_until(begin..end, 0);
            bytes.ok().map(<[u8]>::to_vec)
        };
        self.needed = of(DT_NEEDED).take(MAX_FILES).filter_map(text).collect();
        self.rpath = of(DT_RPATH).find_map(text);
        self.runpath = of(DT_RUNPATH).find_map(text);
    }
}

/// The offset in the file of an address.
fn offset(segments: &[ProgramHeader64<Endian>], address: u64) -> Option<u64> {
    segments.iter().find_map(|segment| {
        let from = address.checked_sub(segment.p_vaddr(LittleEndian))?;
        let (offset, size) = segment.file_range(LittleEndian);
        (from < size).then(|| offset.checked_add(from)).flatten()
    })
}

/// The program that the kernel runs for a script.
fn interpreter_of_script(file: &File) -> Option<PathBuf> {
    let mut head = [0; SCRIPT_HEAD];
    let len = file.read_at(&mut head, 0).ok()?;
    let line = head[..len].strip_prefix(b"#!")?;
    let line = line.split(|byte| b"\n\0".contains(byte)).next()?;
    let mut words = line.split(|byte| b" \t".contains(byte));
    let name = words.find(|word| !word.is_empty())?;
    Some(OsStr::from_bytes(name).into())
}

fn with_origin(name: &[u8], origin: &Path) -> PathBuf {
    for variable in [b"$ORIGIN".as_slice(), b"${ORIGIN}"] {
        if let Some(rest) = name.strip_prefix(variable) {
            return OsStr::from_bytes(&[origin.as_os_str().as_bytes(), rest].concat()).into();
        }
    }
    OsStr::from_bytes(name).into()
}

fn variable(name: &str) -> Vec<u8> {
    env::var_os(name).unwrap_or_default().as_bytes().to_vec()
}

/// The libraries in the dynamic linker's list: paths by name. Wrong bytes have none.
fn parse_cache(bytes: &[u8]) -> HashMap<Vec<u8>, Vec<PathBuf>> {
    const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
    const HEAD: usize = 48;
    const ENTRY: usize = 24;
    let mut found: HashMap<_, Vec<PathBuf>> = HashMap::new();
    // An older list may precede it.
    let begin = bytes.windows(MAGIC.len()).position(|at| at == MAGIC);
    let bytes = begin.map_or(&[][..], |begin| &bytes[begin..]);
    let text = |at: u32| bytes.get(at as usize..)?.split(|byte| *byte == 0).next();
    let count = number(bytes, MAGIC.len()).unwrap_or(0);
    let entries = bytes.get(HEAD..).unwrap_or_default().chunks_exact(ENTRY);
    for entry in entries.take(count as usize) {
        let [name, path] = [4, 8].map(|at| number(entry, at).and_then(text));
        if let (Some(name), Some(path)) = (name, path) {
            let path = OsStr::from_bytes(path).into();
            found.entry(name.to_vec()).or_default().push(path);
        }
    }
    found
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(word.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_dynamic_program_starts_with_its_libraries() {
        // The shell of most systems is dynamic. A static one starts alone.
        let shell = fs::canonicalize("/bin/sh").unwrap();
        let identity = |path: &Path| {
            use std::os::unix::fs::MetadataExt;
            let status = fs::metadata(path).unwrap();
            (status.dev(), status.ino())
        };
        let ids = |files: &[File]| -> Vec<_> {
            use std::os::fd::AsRawFd;
            let path = |file: &File| PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
            files.iter().map(|file| identity(&path(file))).collect()
        };
        let own = ids(&files(&[shell.clone()]));
        assert_eq!(own.first(), Some(&identity(&shell)));
        let headers = Headers::read(&File::open(&shell).unwrap()).unwrap();
        let count = match &headers.interpreter {
            Some(interpreter) => {
                assert!(own.contains(&identity(interpreter)), "{own:?}");
                2 + headers.needed.len()
            }
            None => 1,
        };
        assert!(own.len() >= count, "{own:?}: {:?}", headers.needed);
        // A script starts with the files of its interpreter.
        let mut script = tempfile::NamedTempFile::new().unwrap();
        writeln!(script, "#!  {} -e\nexit", shell.display()).unwrap();
        assert_eq!(ids(&files(&[script.path().to_owned()])), own);
        // A script that is its own interpreter, and a text, start with nothing.
        let path = script.path().to_owned();
        fs::write(&path, format!("#!{}\n", path.display())).unwrap();
        assert!(files(&[path.clone()]).is_empty());
        fs::write(&path, "text").unwrap();
        assert!(files(&[path, "/nonexistent".into()]).is_empty());
    }

    #[test]
    fn the_linker_replaces_the_origin() {
        let origin = Path::new("/opt/program");
        for (name, directory) in [
            ("$ORIGIN", "/opt/program"),
            ("${ORIGIN}/../lib", "/opt/program/../lib"),
            ("/lib", "/lib"),
        ] {
            let found = with_origin(name.as_bytes(), origin);
            assert_eq!(found, Path::new(directory), "{name}");
        }
    }

    #[test]
    fn wrong_lists_have_no_libraries() {
        let list = |count: u32| {
            let mut bytes = b"older glibc-ld.so.cache1.1".to_vec();
            bytes.extend(count.to_le_bytes());
            bytes.resize(6 + 48, 0);
            for word in [0, 72, 77, 0, 0, 0_u32] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.extend(b"name\0/path\0");
            bytes
        };
        let found = parse_cache(&list(1));
        assert_eq!(found[b"name".as_slice()], [Path::new("/path")]);
        assert!(parse_cache(&list(0)).is_empty());
        for length in 0..list(1).len() - 12 {
            assert!(parse_cache(&list(9)[..length]).is_empty(), "{length}");
        }
        parse_cache(&[&list(u32::MAX)[..], &[0xff; 100]].concat());
    }
}
