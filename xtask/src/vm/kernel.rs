//! The distribution kernels that guests boot: found, downloaded and unpacked once.
//!
//! Debian's meta-packages name the newest version; that name goes out of date when the archive moves on, so a name is
//! resolved anew each time and only what is new is downloaded. Without a network the newest unpacked one serves.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::proc::{capture, run};

/// A kernel of the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Flavour {
    /// Debian 12's own cloud kernel
    #[value(name = "6.1")]
    V6_1,
    /// The newer cloud kernel of Debian 12's security archive
    #[value(name = "6.12")]
    V6_12,
    /// The same version with PREEMPT_RT
    #[value(name = "6.12-rt")]
    V6_12Rt,
}

impl Flavour {
    pub(super) const ALL: [Self; 3] = [Self::V6_1, Self::V6_12, Self::V6_12Rt];

    /// The name used on the command line, in tables and in file names.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::V6_1 => "6.1",
            Self::V6_12 => "6.12",
            Self::V6_12Rt => "6.12-rt",
        }
    }

    /// The package that depends on the newest version.
    fn meta_package(self) -> &'static str {
        match self {
            Self::V6_1 => "linux-image-cloud-amd64",
            Self::V6_12 => "linux-image-6.12-cloud-amd64",
            Self::V6_12Rt => "linux-image-6.12-rt-amd64",
        }
    }

    /// How the versioned package begins and ends.
    fn pattern(self) -> (&'static str, &'static str) {
        match self {
            Self::V6_1 => ("linux-image-6.1.", "-cloud-amd64"),
            Self::V6_12 => ("linux-image-6.12.", "-cloud-amd64"),
            Self::V6_12Rt => ("linux-image-6.12.", "-rt-amd64"),
        }
    }

    fn is_package(self, name: &str) -> bool {
        let (start, end) = self.pattern();
        name.starts_with(start) && name.ends_with(end)
    }
}

/// An unpacked kernel package.
#[derive(Debug, Clone)]
pub(super) struct Kernel {
    pub(super) flavour: Flavour,
    /// Version as `uname -r` prints it.
    pub(super) release: String,
    directory: PathBuf,
}

#[cfg(test)]
impl Kernel {
    /// A kernel that cannot be booted.
    pub(super) fn none(flavour: Flavour) -> Self {
        Self {
            flavour,
            release: String::new(),
            directory: PathBuf::new(),
        }
    }
}

impl Kernel {
    /// The image that QEMU boots.
    pub(super) fn image(&self) -> PathBuf {
        self.directory
            .join(format!("boot/vmlinuz-{}", self.release))
    }

    /// The directory of its modules.
    pub(super) fn modules(&self) -> PathBuf {
        self.directory.join("lib/modules").join(&self.release)
    }
}

/// Finds the newest kernel of a flavour, downloading it into `cache` if it is not there.
pub(super) fn fetch(cache: &Path, flavour: Flavour) -> Result<Kernel> {
    fs::create_dir_all(cache).with_context(|| format!("making \"{}\"", cache.display()))?;
    // Held until this returns: another run may want to unpack into the same place.
    let lock = cache.join("lock");
    let held = fs::File::create(&lock).with_context(|| format!("making \"{}\"", lock.display()))?;
    held.lock()
        .with_context(|| format!("locking \"{}\"", lock.display()))?;
    let failure = match resolve(flavour).and_then(|package| obtain(cache, &package)) {
        Ok(()) => None,
        // The lists may be missing or older than the archive.
        Err(_) => update()
            .and_then(|()| resolve(flavour))
            .and_then(|package| obtain(cache, &package))
            .err(),
    };
    let newest = cached(cache, flavour)?;
    match (newest, failure) {
        (Some(kernel), None) => Ok(kernel),
        (Some(kernel), Some(error)) => {
            println!(
                "vm: using {} as unpacked before, because the newest {} cannot be had: {error:#}",
                kernel.release,
                flavour.name()
            );
            Ok(kernel)
        }
        (None, Some(error)) => Err(error.context(format!(
            "no kernel {} is unpacked in \"{}\" and none can be had; with a network, `apt-get update` must work and \
             \"{}\" must exist",
            flavour.name(),
            cache.display(),
            flavour.meta_package()
        ))),
        (None, None) => bail!(
            "the package of kernel {} holds no \"boot/vmlinuz-*\"; Debian may have changed its layout",
            flavour.name()
        ),
    }
}

fn update() -> Result<()> {
    println!("vm: updating the package lists");
    run(Command::new("apt-get").args(["-qq", "-o", "DPkg::Lock::Timeout=300", "update"]))
}

/// The versioned package a meta-package stands for now.
fn resolve(flavour: Flavour) -> Result<String> {
    let meta = flavour.meta_package();
    let text = capture(Command::new("apt-cache").args(["depends", "--important", meta]))?;
    match parse_depends(&text, flavour) {
        Some(package) => Ok(package),
        None => bail!("package \"{meta}\" depends on no kernel image: {text:?}"),
    }
}

fn parse_depends(text: &str, flavour: Flavour) -> Option<String> {
    text.lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: "))
        .find(|name| flavour.is_package(name))
        .map(str::to_owned)
}

/// Downloads and unpacks a package unless that was done before.
fn obtain(cache: &Path, package: &str) -> Result<()> {
    let directory = cache.join(package);
    if directory.exists() {
        return Ok(());
    }
    println!("vm: downloading {package}");
    let partial = cache.join("partial");
    if partial.exists() {
        fs::remove_dir_all(&partial)
            .with_context(|| format!("removing \"{}\"", partial.display()))?;
    }
    fs::create_dir_all(&partial).with_context(|| format!("making \"{}\"", partial.display()))?;
    run(Command::new("apt-get")
        .args(["-qq", "-o", "APT::Sandbox::User=root", "download", package])
        .current_dir(&partial))
    .with_context(|| {
        format!("downloading \"{package}\"; the archive keeps only the newest version, so package lists that are old name one that is gone")
    })?;
    let mut packages = fs::read_dir(&partial)
        .with_context(|| format!("listing \"{}\"", partial.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()));
    let Some(file) = packages.next() else {
        bail!("`apt-get download {package}` left no file");
    };
    let unpacked = partial.join("unpacked");
    run(Command::new("dpkg").arg("-x").args([&file, &unpacked]))?;
    // Only a whole one gets the name that the next run looks for.
    fs::rename(&unpacked, &directory)
        .with_context(|| format!("renaming to \"{}\"", directory.display()))?;
    fs::remove_dir_all(&partial).with_context(|| format!("removing \"{}\"", partial.display()))
}

/// The newest unpacked kernel of a flavour.
fn cached(cache: &Path, flavour: Flavour) -> Result<Option<Kernel>> {
    let names = fs::read_dir(cache)
        .with_context(|| format!("listing \"{}\"", cache.display()))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| flavour.is_package(name));
    let newest = names.max_by_key(|name| version(name));
    Ok(newest.and_then(|name| {
        let kernel = Kernel {
            flavour,
            release: name.strip_prefix("linux-image-")?.to_owned(),
            directory: cache.join(&name),
        };
        kernel.image().exists().then_some(kernel)
    }))
}

/// The numbers in a package name, which order its versions.
fn version(name: &str) -> Vec<u64> {
    name.split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meta_package_names_its_newest_image() {
        let text = "linux-image-6.12-rt-amd64\n  Depends: linux-image-6.12.117+deb12-rt-amd64\n";
        assert_eq!(
            parse_depends(text, Flavour::V6_12Rt).as_deref(),
            Some("linux-image-6.12.117+deb12-rt-amd64")
        );
        assert_eq!(parse_depends(text, Flavour::V6_12), None);
        assert_eq!(parse_depends("", Flavour::V6_1), None);
    }

    #[test]
    fn flavours_do_not_take_each_others_packages() {
        for (name, owner) in [
            ("linux-image-6.1.0-57-cloud-amd64", Flavour::V6_1),
            ("linux-image-6.12.117+deb12-cloud-amd64", Flavour::V6_12),
            ("linux-image-6.12.117+deb12-rt-amd64", Flavour::V6_12Rt),
        ] {
            for flavour in Flavour::ALL {
                assert_eq!(flavour.is_package(name), flavour == owner, "{name}");
            }
        }
    }

    #[test]
    fn versions_are_ordered_as_numbers() {
        assert!(
            version("linux-image-6.12.117+deb12-cloud-amd64")
                > version("linux-image-6.12.99+deb12-cloud-amd64")
        );
    }
}
