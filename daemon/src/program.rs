//! The program `omird`: arguments, logs, signals, exit codes.

mod arguments;
mod data_folder;
mod error;
mod identities;
mod memory_folder;
mod rebuild;
mod reloading;
mod signals;
mod stop_on_drop;
mod transports;

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;

pub use self::arguments::Arguments;
use self::data_folder::FolderError;
use self::error::{DataFault, ServeError};
use self::memory_folder::RemovedOnDrop;
use self::rebuild::Rebuild;
use self::signals::Signals;
use self::stop_on_drop::StopOnDrop;
use self::transports::{OtherTransports, TransportParts};
use crate::audit::Audit;
use crate::config::reload::Running;
use crate::config::{self, Config, Host};
use crate::engine::Events;
use crate::engine::{Clock, SimulatedClock, Source, SystemClock};
use crate::engine::{Engine, Parts};
use crate::liveness::Liveness;
use crate::logs::{self, Logs};
#[cfg(feature = "http")]
use crate::metrics::Requests;
#[cfg(feature = "http")]
use crate::models::Client;
use crate::protocols::{ModelPath, ProtocolSettings, Protocols, manifesto};
use crate::restart;
use crate::router::{Router, Sink};
use crate::service_manager;
use crate::service_manager::watchdog::Watchdog;
use crate::store::{DeviceKey, SledStore, device_key};
use crate::zenoh::{Keys, Service};

/// Logs of ours, and of Zenoh only what is broken: that no router is there yet is no news, nor is each
/// message of a peer whose clock is wrong.
pub(crate) const DEFAULT_FILTER: &str =
    "info,zenoh=error,zenoh::net::routing::dispatcher::pubsub=off,uhlc=off,sled=error";

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
        // Nothing else of the configuration is a file that a start cannot do without.
        if let Err(error) = config.embedding.open(config.settings.language) {
            eprintln!("omird: {}", ServeError::Model(error));
            return ExitCode::FAILURE;
        }
        println!("configuration is good: robot={} data={}", config.robot, config.data.display());
        return ExitCode::SUCCESS;
    }
    if running.config().log != config::DEFAULT_LOG {
        logs.follow(&filter(&running.config().log));
    }
    match serve(running, &arguments, &logs) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("omird: {error}");
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
fn serve(mut running: Running, arguments: &Arguments, logs: &Logs) -> Result<(), ServeError> {
    // Of this start; what changes while it runs is in `running`.
    let config = &running.config().clone();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ServeError::Runtime)?;
    // Listened for from the start, so that a signal during a long rebuild is not lost.
    let signals = {
        let _guard = runtime.enter();
        Signals::listen().map_err(ServeError::Signals)?
    };
    let data = &config.data;
    let in_data = |fault| ServeError::Data { folder: data.clone(), fault };
    let in_folder = |error: FolderError| in_data(DataFault::Folder(error));
    data_folder::make(data).map_err(in_folder)?;
    let _removed_on_drop = arguments.memory_only.then(|| RemovedOnDrop(data.clone()));
    // Named for this very start, whichever user owns the folder.
    let is_named = arguments.data.is_some() || arguments.memory_only;
    if !is_named && !config.settings.read_only {
        data_folder::check_owner(data, &Host::ask()).map_err(in_folder)?;
    }
    let disk = data_folder::locked(data).map_err(in_folder)?;
    // Before the store, which may take long: a model that cannot be used is a mistake of the configuration.
    let embedder = config.embedding.open(config.settings.language).map_err(ServeError::Model)?;
    let key = device_key(data, || random().expect("the system gives random bytes"))
        .map_err(|error| in_data(DataFault::Key(error)))?;
    let simulated = match config.source {
        Source::System => None,
        Source::Simulated => Some(Arc::new(SimulatedClock::default())),
    };
    let settings = protocol_settings(config, &key, simulated.clone(), arguments.memory_only);
    let clock: Arc<dyn Clock> = match simulated {
        Some(simulated) => simulated,
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
    let mut rebuild = Rebuild::default();
    let engine = Engine::open(parts, &mut |progress| rebuild.note(progress))
        .map(StopOnDrop)
        .map_err(|error| in_data(DataFault::Store(error)))?;
    engine.embed_with(embedder);
    // sled makes its folder by the umask.
    let _ = std::fs::set_permissions(data.join("index"), std::fs::Permissions::from_mode(0o700));
    let keys = Keys::new(&config.prefix, &config.robot);
    let access =
        identities::open(config, &engine).map_err(|error| in_data(DataFault::Tokens(error)))?;
    let audit = audit_of(config, &engine).map_err(ServeError::Audit)?;
    #[cfg(feature = "http")]
    let requests = Requests::default();
    let sinks: Vec<Box<dyn Sink>> = vec![
        #[cfg(feature = "http")]
        Box::new(requests.clone()),
        Box::new(audit.clone()),
    ];
    let router = Router::new(engine.clone(), sinks);
    let protocols = Protocols::configured(&engine, &config.robot, access.clone(), router, settings);
    let (network, readers) = (&identities::network(config, &access, &keys), config.readers);
    let service = Service::start(&engine, &protocols, &keys, network, readers)
        .map_err(ServeError::Service)?;
    let (writing, reading) = (engine.clone(), service.reader_probe());
    let liveness = Liveness::new(vec![
        ("the thread that writes", Box::new(move |deadline| writing.probe_writer(deadline))),
        ("the threads that read", Box::new(move |_| reading())),
    ]);
    let parts = TransportParts {
        liveness: liveness.clone(),
        #[cfg(feature = "http")]
        requests,
    };
    let transports = match OtherTransports::start(config, &engine, &protocols, &service, parts) {
        Ok(transports) => transports,
        Err(error) => {
            service.stop();
            return Err(error);
        }
    };
    announce(config, &transports);
    service_manager::tell(service_manager::READY);
    let (tell, mut broken) = tokio::sync::oneshot::channel();
    engine.on_broken(Box::new(move |thread| {
        let _ = tell.send(thread);
    }));
    let watchdog = Watchdog::start(liveness);
    if let Err(error) = &watchdog {
        tracing::error!(%error, "there is no thread that gives signs of life to the service manager");
    }
    let mut reload = || {
        reloading::reload(&mut running, arguments, &engine, &protocols, logs);
        transports.reload();
    };
    let ended = runtime.block_on(end(signals, &mut broken, &mut reload));
    tracing::info!("stopping");
    drop(watchdog);
    service_manager::tell(service_manager::STOPPING);
    if ended.is_err() {
        // Transports wait for answers of the engine: its stop gives each of them one.
        engine.stop();
    }
    transports.stop();
    service.stop();
    engine.stop();
    audit.stop();
    ended?;
    match broken.try_recv() {
        Ok(thread) => Err(ServeError::Broken { thread }),
        Err(_) => Ok(()),
    }
}

fn protocol_settings(
    config: &Config,
    key: &DeviceKey,
    simulated: Option<Arc<SimulatedClock>>,
    is_memory_only: bool,
) -> ProtocolSettings {
    ProtocolSettings {
        experience: config.experience.clone(),
        experience_key: key.derived("omird: people in experiences"),
        manifesto: config.manifesto,
        // With the key of the device, under a prefix of their own: a verifier that trusts its segments trusts these
        // proofs.
        manifesto_keys: manifesto::Keys::signing(key.secret()),
        simulated,
        compass: config.compass.clone(),
        model: model_of(config),
        is_memory_only,
    }
}

/// Returns the way to the model that is configured.
#[cfg(feature = "http")]
fn model_of(config: &Config) -> Option<ModelPath> {
    let client = Client::new(config.compass_model.clone()?);
    Some(ModelPath(Arc::new(client)))
}

/// Without HTTP there is none.
#[cfg(not(feature = "http"))]
fn model_of(_: &Config) -> Option<ModelPath> {
    None
}

/// Starts the audit, and has `status` tell of it.
fn audit_of(config: &Config, engine: &Engine) -> std::io::Result<Audit> {
    let clock = engine.clone();
    let audit = Audit::start(&config.audit, Box::new(move || clock.now().0))?;
    let told = audit.clone();
    engine.add_status_section("audit", Box::new(move || Some(told.status())));
    Ok(audit)
}

/// Waits until the program is to end: told to by a signal, or broken. Going on would look alive from outside and answer
/// no client; systemd starts it again (`Restart=on-failure`).
async fn end(
    signals: Signals,
    broken: &mut tokio::sync::oneshot::Receiver<&'static str>,
    reload: &mut dyn FnMut(),
) -> Result<(), ServeError> {
    tokio::select! {
        () = signals.wait(reload) => Ok(()),
        Ok(thread) = broken => Err(ServeError::Broken { thread }),
    }
}

/// The one line on standard output that scripts wait for.
fn announce(config: &Config, transports: &OtherTransports) {
    let endpoint = match config.network.listening().unwrap_or_default().as_slice() {
        [] => "none".to_owned(),
        endpoints => endpoints.join(","),
    };
    let http = transports.http_address().map_or("none".to_owned(), |address| address.to_string());
    let mut out = std::io::stdout().lock();
    let line = writeln!(
        out,
        "ready robot={} data={} zenoh={endpoint} http={http}",
        config.robot,
        config.data.display()
    );
    // A service manager that does not listen is no reason not to serve.
    let _ = line.and_then(|()| out.flush());
}

fn random<const N: usize>() -> Result<[u8; N], getrandom::Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_engine_ends_the_program_as_a_failure() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (tell, mut broken) = tokio::sync::oneshot::channel();
        tell.send("omird-writer").unwrap();
        let ended = runtime
            .block_on(async { end(Signals::listen().unwrap(), &mut broken, &mut || {}).await });
        assert!(ended.unwrap_err().to_string().contains("omird-writer"));
    }
}
