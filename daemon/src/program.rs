//! The program `omird`: arguments, logs, signals, exit codes.

mod data_folder;
mod reloading;

use std::fmt;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};

use crate::clock::{Clock, SimulatedClock, Source, SystemClock};
use crate::config::reload::Running;
use crate::config::{self, Config, Host, Invalid, Origin};
use crate::engine::events::Events;
use crate::engine::{Engine, Parts};
use crate::logs::{self, Logs};
use crate::protocols::Protocols;
use crate::restart;
use crate::service::{Keys, Mode, Service};
use crate::service_manager;
use crate::service_manager::watchdog::Watchdog;
use crate::store::derived::SledStore;
use crate::store::keys;
use crate::store::recovery::Progress;

/// Logs of ours, and of Zenoh only what is broken: that no router is there yet is no news, nor is each
/// message of a peer whose clock is wrong.
pub(crate) const DEFAULT_FILTER: &str =
    "info,zenoh=error,zenoh::net::routing::dispatcher::pubsub=off,uhlc=off,sled=error";

/// Memory daemon for robots: keeps what a robot saw, did and learned through power cuts, and
/// recalls it by place, time and words over Zenoh.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "omird",
    version,
    after_help = "EXIT STATUS\n  \
        0  stopped by SIGINT or SIGTERM, everything on disk; with --check, the configuration is good\n  \
        1  the data folder or the network cannot be used, or a bug ended it: what it acknowledged is stored\n  \
        2  the command line or the configuration is wrong\n\n\
        EXAMPLES\n  \
        omird\n  \
        omird --robot rover --data /var/lib/omird --listen tcp/0.0.0.0:7448\n  \
        RUST_LOG=debug omird --config config/omird.toml"
)]
pub struct Arguments {
    /// Configuration file (TOML); see config/omird.toml
    #[arg(long, value_name = "FILE", env = "OMIRD_CONFIG")]
    pub config: Option<PathBuf>,
    /// Data folder
    #[arg(long, value_name = "DIR", env = "OMIRD_DATA")]
    pub data: Option<PathBuf>,
    /// Name of this robot, the second part of every key
    #[arg(long, value_name = "NAME", env = "OMIRD_ROBOT")]
    pub robot: Option<String>,
    /// Endpoint to listen on, instead of tcp/127.0.0.1:7448; may be repeated
    #[arg(long, value_name = "ENDPOINT")]
    pub listen: Vec<String>,
    /// Endpoint to connect to, instead of tcp/127.0.0.1:7447; may be repeated
    #[arg(long, value_name = "ENDPOINT")]
    pub connect: Vec<String>,
    /// Role in the Zenoh network
    #[arg(long, value_name = "MODE")]
    pub mode: Option<Mode>,
    /// Zenoh's own JSON5 file, for TLS, users and access control
    #[arg(long, value_name = "FILE")]
    pub zenoh_config: Option<PathBuf>,
    /// Refuse every change
    #[arg(long)]
    pub read_only: bool,
    /// Check the configuration, say what is wrong with it, and end without starting
    #[arg(long)]
    pub check: bool,
}

impl Arguments {
    /// The configuration these arguments and their file come to.
    ///
    /// # Errors
    /// Names the key, and the file where that is what it stands in.
    pub fn resolve(&self, host: &Host) -> Result<Running, config::ConfigError> {
        let (mut file, written) = self.read()?;
        // Alone first: what is wrong with them is no fault of the file.
        let mut given = config::file::File::default();
        self.clone().onto(&mut given);
        let complain = |origin| move |invalid| config::ConfigError { origin, invalid };
        checked(given, host).map_err(complain(Origin::Arguments))?;
        self.clone().onto(&mut file);
        let origin = self.config.clone().map_or(Origin::Defaults, Origin::File);
        let config = checked(file, host).map_err(complain(origin))?;
        Ok(Running::new(written, config))
    }

    /// The file, and its keys as they are written.
    fn read(&self) -> Result<(config::file::File, toml::Table), config::ConfigError> {
        self.config.as_deref().map_or_else(|| Ok(Default::default()), config::read)
    }

    /// Puts what is given here over what the file says.
    fn onto(self, file: &mut config::file::File) {
        file.data = self.data.or(file.data.take());
        file.robot = self.robot.or(file.robot.take());
        if !self.listen.is_empty() || !self.connect.is_empty() {
            let named = |endpoints: Vec<String>| (!endpoints.is_empty()).then_some(endpoints);
            file.network.listen = named(self.listen);
            file.network.connect = named(self.connect);
        }
        file.network.mode = self.mode.or(file.network.mode);
        file.network.zenoh_config = self.zenoh_config.or(file.network.zenoh_config.take());
        if self.read_only {
            file.access.read_only = Some(true);
        }
    }
}

/// A configuration of which Zenoh takes its part.
fn checked(file: config::file::File, host: &Host) -> Result<Config, Invalid> {
    let config = config::resolve(file, host)?;
    if let Some(path) = &config.network.file {
        // Zenoh's own words for it have its insides in them.
        let matter = match std::fs::metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                "there is no such file".to_owned()
            }
            Err(error) => error.to_string(),
            Ok(found) if found.is_dir() => {
                "is a folder; it takes a file of Zenoh's, in JSON5".to_owned()
            }
            Ok(_) => return taken(config),
        };
        let message = format!("{}: {matter}", path.display());
        return Err(Invalid::other("network.zenoh_config", message));
    }
    taken(config)
}

/// A configuration of which Zenoh takes its part, as that is.
fn taken(config: Config) -> Result<Config, Invalid> {
    config.network.check().map_err(Invalid::of_all)?;
    Ok(config)
}

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if !arguments.check {
        restart::with_settings();
    }
    run(arguments)
}

/// Runs the program.
pub fn run(arguments: Arguments) -> ExitCode {
    let logs = logs::to_stderr(DEFAULT_FILTER);
    let running = match arguments.resolve(&Host::ask()) {
        Ok(running) => running,
        Err(error) => {
            eprintln!("omird: {error}");
            return ExitCode::from(2);
        }
    };
    if arguments.check {
        let config = running.config();
        println!("configuration is good: robot={} data={}", config.robot, config.data.display());
        return ExitCode::SUCCESS;
    }
    if running.config().log != config::DEFAULT_LOG {
        logs.follow(&filter(&running.config().log));
    }
    match serve(running, &arguments, &logs) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("omird: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The filter of the logs that `log` in the configuration comes to: Zenoh stays as quiet as it is by default, unless
/// it is named.
fn filter(log: &str) -> String {
    format!("{DEFAULT_FILTER},{log}")
}

/// Serves as configured.
fn serve(mut running: Running, arguments: &Arguments, logs: &Logs) -> Result<(), String> {
    // Of this start; what changes while it runs is in `running`.
    let config = &running.config().clone();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("no runtime: {error}"))?;
    // Listened for from the start, so that a signal during a long rebuild is not lost.
    let signals = {
        let _guard = runtime.enter();
        Signals::listen().map_err(|error| format!("signals cannot be handled: {error}"))?
    };
    let data = &config.data;
    let in_data = |what: &dyn fmt::Display| format!("{}: {what}", data.display());
    data_folder::make(data).map_err(|error| in_data(&error))?;
    // Named for this very start, whoever the folder belongs to.
    let is_named = arguments.data.is_some();
    if !is_named && !config.settings.read_only {
        data_folder::check_owner(data, &Host::ask()).map_err(|error| in_data(&error))?;
    }
    let disk = data_folder::locked(data).map_err(|error| in_data(&error))?;
    let key = keys::device_key(data, || random().expect("the system gives random bytes"))
        .map_err(|error| in_data(&error))?;
    let simulated = match config.source {
        Source::System => None,
        Source::Simulated => Some(Arc::new(SimulatedClock::default())),
    };
    let clock: Arc<dyn Clock> = match &simulated {
        Some(simulated) => simulated.clone(),
        None => Arc::new(SystemClock::new(&config.synchronised_file)),
    };
    let parts = Parts {
        disk: Arc::new(disk),
        index: Some(SledStore::boxed(&data.join("index"))),
        clock,
        key,
        random: Box::new(|| u128::from_le_bytes(random().expect("the system gives random bytes"))),
        settings: config.settings.clone(),
        events: Events::default(),
    };
    let bar = RebuildBar::default();
    let engine = Engine::open(parts, &mut |progress| bar.show(progress)).map_err(|error| {
        let hint = match error.kind() {
            std::io::ErrorKind::PermissionDenied => {
                "; something in it belongs to another user: chown -R it to whoever omird runs as"
            }
            std::io::ErrorKind::NotADirectory | std::io::ErrorKind::AlreadyExists => {
                "; what lies there is no data folder: name another with --data"
            }
            _ => "",
        };
        in_data(&format!("{error}{hint}"))
    })?;
    // sled makes its folder by the umask.
    let _ = std::fs::set_permissions(data.join("index"), std::fs::Permissions::from_mode(0o700));
    let keys = Keys::new(&config.prefix, &config.robot);
    let protocols = Protocols::over(&engine, &config.robot);
    let (network, readers) = (&config.network, config.readers);
    let service =
        Service::start(&engine, &protocols, &keys, network, readers).and_then(|service| {
            match simulated.clone() {
                Some(clock) => service.set_by(&keys, clock),
                None => Ok(service),
            }
        });
    let service = match service {
        Ok(service) => service,
        Err(error) => {
            engine.stop();
            return Err(error);
        }
    };
    let neighbours = match Neighbours::join(config, &engine, &protocols, &service, simulated) {
        Ok(neighbours) => neighbours,
        Err(error) => {
            service.stop();
            engine.stop();
            return Err(error);
        }
    };
    announce(config);
    service_manager::tell(service_manager::READY);
    let (tell, mut broken) = tokio::sync::oneshot::channel();
    engine.on_broken(Box::new(move |thread| {
        let _ = tell.send(thread);
    }));
    let (writing, reading) = (engine.clone(), service.prover());
    let watchdog = Watchdog::start(vec![
        ("the thread that writes", Box::new(move |deadline| writing.prove_writing(deadline))),
        ("the threads that read", Box::new(move |_| reading())),
    ]);
    if let Err(error) = &watchdog {
        tracing::error!(%error, "there is no thread that gives signs of life to the service manager");
    }
    let mut reload = || reloading::reload(&mut running, arguments, &engine, logs);
    let ended = runtime.block_on(end(signals, &mut broken, &mut reload));
    tracing::info!("stopping");
    drop(watchdog);
    service_manager::tell(service_manager::STOPPING);
    if ended.is_err() {
        // Adapters wait for what they asked of it: it answers them that nobody does.
        engine.stop();
    }
    neighbours.leave();
    service.stop();
    engine.stop();
    ended?;
    match broken.try_recv() {
        Ok(thread) => Err(ended_by(thread)),
        Err(_) => Ok(()),
    }
}

fn ended_by(thread: &str) -> String {
    format!(
        "a bug ended the thread {thread}, see above; what was acknowledged is stored, and the next start serves it"
    )
}

/// Waits until the program is to end: told to by a signal, or broken. Going on would look alive from outside and
/// answer nobody; systemd begins it anew (`Restart=on-failure`).
async fn end(
    signals: Signals,
    broken: &mut tokio::sync::oneshot::Receiver<&'static str>,
    reload: &mut dyn FnMut(),
) -> Result<(), String> {
    tokio::select! {
        () = signals.wait(reload) => Ok(()),
        Ok(thread) = broken => Err(ended_by(thread)),
    }
}

/// The adapters besides Zenoh's that run.
struct Neighbours {
    #[cfg(feature = "serial")]
    serial: crate::serial::Ports,
    #[cfg(feature = "ros2")]
    ros2: Option<crate::ros2::Node>,
}

impl Neighbours {
    /// Starts those that are configured.
    #[cfg_attr(
        not(all(feature = "ros2", feature = "serial")),
        allow(unused_variables, reason = "there may be none")
    )]
    fn join(
        config: &Config,
        engine: &Engine,
        protocols: &Protocols,
        service: &Service,
        simulated: Option<Arc<SimulatedClock>>,
    ) -> Result<Self, String> {
        Ok(Self {
            #[cfg(feature = "serial")]
            serial: crate::serial::Ports::start(protocols, &config.serial)
                .map_err(|error| format!("serial: {error}"))?,
            #[cfg(feature = "ros2")]
            ros2: match &config.ros2 {
                None => None,
                Some(ros2) => {
                    if config.network.reaches_nobody() {
                        tracing::warn!(
                            "with [ros2] and no endpoint to connect to, only what connects to omird itself is heard; a \
                             router of ROS is network.connect = [\"{}\"]",
                            crate::service::DEFAULT_ROUTER
                        );
                    }
                    let session = service.session();
                    let node =
                        crate::ros2::Node::start(engine, protocols, session, ros2, simulated);
                    Some(node.map_err(|error| format!("ros2: {error}"))?)
                }
            },
        })
    }

    fn leave(self) {
        #[cfg(feature = "serial")]
        self.serial.stop();
        #[cfg(feature = "ros2")]
        if let Some(node) = self.ros2 {
            node.stop();
        }
    }
}

/// The one line on standard output that scripts wait for.
fn announce(config: &Config) {
    let endpoint = match config.network.listening().unwrap_or_default().as_slice() {
        [] => "none".to_owned(),
        endpoints => endpoints.join(","),
    };
    let mut out = std::io::stdout().lock();
    let line = writeln!(
        out,
        "ready robot={} data={} zenoh={endpoint}",
        config.robot,
        config.data.display()
    );
    // Nobody listening is no reason not to serve.
    let _ = line.and_then(|()| out.flush());
}

fn random<const N: usize>() -> Result<[u8; N], getrandom::Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
    _file_size: tokio::signal::unix::Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            // A terminal that is closed, or a person who edited the file.
            hangup: signal(SignalKind::hangup())?,
            // SIGXFSZ (25): with it handled, a file-size limit is an error like a full disk
            // instead of the end of the process.
            _file_size: signal(SignalKind::from_raw(25))?,
        })
    }

    /// Waits for one that ends the program; each hangup has `reload` done meanwhile.
    async fn wait(mut self, reload: &mut dyn FnMut()) {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return,
                _ = self.terminate.recv() => return,
                Some(()) = self.hangup.recv() => reload(),
            }
        }
    }
}

#[derive(Default)]
struct RebuildBar(std::cell::OnceCell<ProgressBar>);

impl RebuildBar {
    fn show(&self, progress: Progress) {
        match progress {
            Progress::Rebuilding { done, total } => {
                let bar = self.0.get_or_init(|| {
                    let style = "rebuilding the index {bar:32} {pos}/{len} segments, {eta} left";
                    let style = ProgressStyle::with_template(style);
                    ProgressBar::new(total)
                        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
                });
                bar.set_position(done);
            }
            Progress::Done => {
                if let Some(bar) = self.0.get() {
                    bar.finish_and_clear();
                    tracing::info!(segments = bar.position(), "the index was rebuilt");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_names_where_the_key_stands() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.toml");
        let path = file.to_str().unwrap();
        let complain = |text: &str, more: &[&str]| {
            std::fs::write(&file, text).unwrap();
            let words = ["omird", "--config", path].into_iter().chain(more.iter().copied());
            let arguments = Arguments::try_parse_from(words).unwrap();
            arguments.resolve(&Host::default()).unwrap_err().to_string()
        };
        let listen = complain("robot = 'rover'", &["--listen", "garbage"]);
        assert!(listen.starts_with("command line or environment: network.listen"), "{listen}");
        let zenoh = complain("", &["--zenoh-config", "/nowhere/z.json5"]);
        let said = "command line or environment: network.zenoh_config: /nowhere/z.json5: there is no such file";
        assert_eq!(zenoh, said);
        let robot = complain("robot = 'a b'", &["--listen", "tcp/127.0.0.1:0"]);
        assert!(robot.starts_with(&format!("{path}: robot")), "{robot}");
    }

    #[test]
    fn a_broken_engine_ends_the_program_as_a_failure() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (tell, mut broken) = tokio::sync::oneshot::channel();
        tell.send("omird-writer").unwrap();
        let ended = runtime
            .block_on(async { end(Signals::listen().unwrap(), &mut broken, &mut || {}).await });
        assert!(ended.unwrap_err().contains("omird-writer"));
    }
}
